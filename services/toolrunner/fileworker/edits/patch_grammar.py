"""The grammar of patches, from `*** Begin Patch` to `*** End Patch`, parsed strictly."""

from dataclasses import dataclass, field
from typing import Final

BEGIN: Final = "*** Begin Patch"
END: Final = "*** End Patch"
ADD: Final = "*** Add File: "
DELETE: Final = "*** Delete File: "
UPDATE: Final = "*** Update File: "
MOVE: Final = "*** Move to: "
END_OF_FILE: Final = "*** End of File"
ANCHOR: Final = "@@"


class PatchSyntaxError(Exception):
    """A line is not valid at its position.

    Attributes:
        line: Number of the line in the patch, from 1.
        problem: What is wrong, and what is valid.
    """

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line} of the patch: {problem}")
        self.line = line
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Chunk:
    """Lines that replace others, after some anchors."""

    line: int
    anchors: tuple[str, ...]
    old: tuple[str, ...]
    new: tuple[str, ...]
    is_at_end: bool = False


@dataclass(frozen=True, slots=True)
class AddFile:
    """A new file."""

    line: int
    path: str
    content: str


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """The deletion of a file."""

    line: int
    path: str


@dataclass(frozen=True, slots=True)
class UpdateFile:
    """The change of a file, with an optional move."""

    line: int
    path: str
    move_to: str
    chunks: tuple[Chunk, ...]


Operation = AddFile | DeleteFile | UpdateFile


def parse(patch: str) -> tuple[Operation, ...]:
    """Parse a patch.

    Raises:
        PatchSyntaxError: A line is not valid at its position.
    """
    return _Parser(_lines(patch)).operations()


def _lines(patch: str) -> list[str]:
    """Return the lines; if all of them end with CRLF, the CR is removed."""
    lines = patch.strip("\r\n").split("\n")
    if all(line.endswith("\r") for line in lines[:-1]):
        return [line.removesuffix("\r") for line in lines]
    return lines


@dataclass
class _Parser:
    lines: list[str]
    at: int = 0  # Index of the next line.
    anchors: list[str] = field(default_factory=list)

    def operations(self) -> tuple[Operation, ...]:
        if not self.lines or self.lines[0].strip() != BEGIN:
            raise PatchSyntaxError(1, f"a patch begins with `{BEGIN}`")
        self.at = 1
        found: list[Operation] = []
        while (line := self._next("an operation")).strip() != END:
            number = self.at
            if line.startswith(ADD):
                found.append(self._add(number, _path(number, line, ADD)))
            elif line.startswith(DELETE):
                found.append(DeleteFile(number, _path(number, line, DELETE)))
            elif line.startswith(UPDATE):
                found.append(self._update(number, _path(number, line, UPDATE)))
            elif line.strip():
                problem = f"expected `{ADD}…`, `{DELETE}…`, `{UPDATE}…` or `{END}`"
                raise PatchSyntaxError(number, problem)
        if any(line.strip() for line in self.lines[self.at :]):
            raise PatchSyntaxError(self.at + 1, f"nothing may follow `{END}`")
        if not found:
            raise PatchSyntaxError(self.at, "the patch says nothing")
        return tuple(found)

    def _next(self, expected: str) -> str:
        if self.at >= len(self.lines):
            raise PatchSyntaxError(self.at + 1, f"it ends where {expected} or `{END}` belongs")
        self.at += 1
        return self.lines[self.at - 1]

    def _peek(self) -> str:
        return self.lines[self.at] if self.at < len(self.lines) else END

    def _is_over(self) -> bool:
        line = self._peek()
        return line.startswith("*** ") and line.strip() != END_OF_FILE

    def _add(self, number: int, path: str) -> AddFile:
        content = []
        while not self._is_over():
            line = self._next("a line of the file")
            if line.startswith("+"):
                content.append(f"{line[1:]}\n")
            elif line.strip():
                raise PatchSyntaxError(self.at, "each line of a new file begins with `+`")
        return AddFile(number, path, "".join(content))

    def _update(self, number: int, path: str) -> UpdateFile:
        move_to = ""
        if self._peek().startswith(MOVE):
            move_to = _path(self.at + 1, self._next("a path"), MOVE)
        chunks: list[Chunk] = []
        while not self._is_over():
            if not self._peek().strip() and self._ends_after_blanks():
                self.at += 1
                continue
            chunks.append(self._chunk())
        if not chunks and not move_to:
            raise PatchSyntaxError(number, "an update needs lines that change")
        return UpdateFile(number, path, move_to, tuple(chunks))

    def _ends_after_blanks(self) -> bool:
        rest = iter(self.lines[self.at :])
        return next((line for line in rest if line.strip()), END).startswith("*** ")

    def _chunk(self) -> Chunk:
        number, anchors = self.at + 1, []
        while self._peek().startswith(ANCHOR):
            anchor = self._next("an anchor")[len(ANCHOR) :].strip()
            if anchor:
                anchors.append(anchor)
        old: list[str] = []
        new: list[str] = []
        is_at_end = False
        while not is_at_end and not self._is_over() and not self._peek().startswith(ANCHOR):
            line = self._next("a line of the change")
            if line.strip() == END_OF_FILE:
                is_at_end = True
            else:
                _take(line, self.at, old, new)
        # Blank lines before the next operation are only separators.
        while self._is_over() and old and new and not old[-1].strip() and not new[-1].strip():
            old.pop()
            new.pop()
        if not old and not new:
            raise PatchSyntaxError(number, "a change needs lines that begin with ` `, `-` or `+`")
        return Chunk(number, tuple(anchors), tuple(old), tuple(new), is_at_end)


def _take(line: str, number: int, old: list[str], new: list[str]) -> None:
    mark, rest = line[:1], line[1:]
    match mark:
        case " " | "" | "\r":
            old.append(rest)
            new.append(rest)
        case "-":
            old.append(rest)
        case "+":
            new.append(rest)
        case _:
            problem = "each line of a change begins with ` ` (stays), `-` (goes) or `+` (comes)"
            raise PatchSyntaxError(number, problem)


def _path(number: int, line: str, mark: str) -> str:
    path = line[len(mark) :].strip()
    if not path:
        raise PatchSyntaxError(number, f"`{mark}` needs a path")
    return path
