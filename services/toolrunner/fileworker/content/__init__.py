"""What is in a file: text, pictures, documents."""
