"""The control plane of workspaces: who makes, stops and removes them, and where chats find them."""
