"""The commands of `parley`, one module each: parse options, make one call, print lines."""

__all__: list[str] = []
