"""Parts of `parley scaletest` that depend on a stack and its machine."""
