"""A file of an export, or a part of one that is too large to be held at once."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class File:
    """A file of the archive.

    Attributes:
        name: Its name in the archive.
        data: Its bytes, or those of one part.
        part: The number of the part, from 0; parts of a file follow one another.
        is_last: Whether the file ends with this part.
    """

    name: str
    data: bytes
    part: int = 0
    is_last: bool = True
