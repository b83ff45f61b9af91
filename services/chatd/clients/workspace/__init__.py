"""What a model can do in a workspace: tools, their arguments and their results."""
