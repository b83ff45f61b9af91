"""What messages are made of: parts, tools, media types."""
