"""The commands of `parley`, one module each: options in, one call, lines out."""

__all__: list[str] = []
