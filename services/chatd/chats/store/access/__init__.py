"""Who may read a chat: owners, shares and break-glass accesses."""
