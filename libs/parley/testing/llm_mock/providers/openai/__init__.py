"""OpenAI's two wire formats."""
