"""Parts of a node, each put together from its rooms."""
