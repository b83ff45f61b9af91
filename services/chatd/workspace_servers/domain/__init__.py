"""Definitions, messages and tools of workspace servers, as pure values."""
