"""Files and processes of workspace servers, at the nodes of their workspaces."""
