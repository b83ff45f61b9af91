"""When a chat is archived or deleted by age, as values and rules."""
