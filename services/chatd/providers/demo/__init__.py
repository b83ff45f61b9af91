"""What the scripted demo says of the tools that it called."""
