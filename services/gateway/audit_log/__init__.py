"""The audit log: appending to its chain, reading, verifying, and signing its heads."""
