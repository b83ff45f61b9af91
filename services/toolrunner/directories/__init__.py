"""The directories of workspaces, and the Linux users that own them."""
