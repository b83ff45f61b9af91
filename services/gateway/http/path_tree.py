"""Finds the entry of a path by its segments, however many entries there are."""

import re
from collections.abc import Mapping
from typing import Final, Generic, TypeVar

Entry = TypeVar("Entry")

_SEGMENT: Final = re.compile(r"[^{}]*|\{(?P<name>[a-z_]+)\}")


class PathTree(Generic[Entry]):
    """Entries by path; a segment `{name}` matches any segment that is not empty.

    Where several paths match, the one with the earliest fixed segment wins: `/users/me` before
    `/users/{user_id}`.
    """

    __slots__ = ("_entry", "_fixed", "_variable")

    def __init__(self) -> None:
        self._entry: tuple[Entry, tuple[str, ...]] | None = None
        self._fixed: dict[str, PathTree[Entry]] = {}
        self._variable: PathTree[Entry] | None = None

    def add(self, path: str, entry: Entry) -> None:
        """Add the entry of a path.

        Raises:
            ValueError: A segment is neither fixed nor one variable, or the path has an entry.
        """
        node, names = self, list[str]()
        for segment in path.split("/"):
            parsed = _SEGMENT.fullmatch(segment)
            if parsed is None:
                raise ValueError(f"{path!r} has the segment {segment!r}; use {{name}} or no braces")
            if parsed["name"] is None:
                node = node._fixed.setdefault(segment, PathTree())
            else:
                names.append(parsed["name"])
                node._variable = node._variable or PathTree()
                node = node._variable
        if node._entry is not None:
            raise ValueError(f"{path!r} matches the same paths as another entry")
        node._entry = entry, tuple(names)

    def find(self, path: str) -> tuple[Entry, Mapping[str, str]] | None:
        """Return the entry of a path and the values of its variables."""
        values: list[str] = []
        found = self._find(path.split("/"), 0, values)
        if found is None:
            return None
        entry, names = found
        return entry, dict(zip(names, values, strict=True))

    def _find(
        self, segments: list[str], at: int, values: list[str]
    ) -> tuple[Entry, tuple[str, ...]] | None:
        if at == len(segments):
            return self._entry
        segment = segments[at]
        fixed = self._fixed.get(segment)
        found = None if fixed is None else fixed._find(segments, at + 1, values)
        if found is None and self._variable is not None and segment:
            values.append(segment)
            found = self._variable._find(segments, at + 1, values)
            if found is None:
                values.pop()
        return found
