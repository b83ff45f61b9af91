"""Contents of messages: parts, tools, media types."""
