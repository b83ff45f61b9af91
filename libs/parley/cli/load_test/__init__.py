"""What `parley scaletest` needs of a stack and its machine."""
