"""Contents of files: text, images and documents."""
