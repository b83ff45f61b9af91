"""Files that readers see either as they were or as they will be, never in between."""

from parley.files.atomic import PRIVATE, write_atomically

__all__ = ["PRIVATE", "write_atomically"]
