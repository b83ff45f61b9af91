"""Goals: chats that go on after each turn until a check passes, within a budget."""
