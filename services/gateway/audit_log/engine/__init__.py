"""Background work of the audit log."""
