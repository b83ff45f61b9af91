"""One hub per followed chat: it reads the committed chat once for all readers of the process."""
