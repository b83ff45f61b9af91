"""Git repositories as the file worker reads them."""
