"""Values and errors that every slice of toolrunner uses."""
