"""The journal of executions and processes, in SQLite."""
