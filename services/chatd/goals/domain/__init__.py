"""What a chat does about its goal after a turn, as values and rules."""
