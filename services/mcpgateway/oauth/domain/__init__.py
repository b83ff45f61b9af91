"""Values and rules of logins, without I/O."""
