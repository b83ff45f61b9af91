"""Parts of the process, each put together from its rooms."""
