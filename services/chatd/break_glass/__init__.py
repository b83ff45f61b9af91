"""Break-glass: administrators who must read chats of others."""
