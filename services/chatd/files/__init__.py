"""Files of users: upload, download, storage, and reading them in turns."""
