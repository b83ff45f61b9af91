"""Files that are replaced atomically: a reader sees the old content or the new."""

from parley.files.atomic import PRIVATE, write_atomically

__all__ = ["PRIVATE", "write_atomically"]
