"""What a workspace may reach: decided without input and output."""
