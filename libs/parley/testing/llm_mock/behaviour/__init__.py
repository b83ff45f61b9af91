"""How the scripted model behaves."""
