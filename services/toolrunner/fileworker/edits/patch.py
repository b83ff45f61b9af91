"""Application of the chunks of a patch to a text: in order, each after the previous one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from toolrunner.fileworker.edits.diff import lines_of
from toolrunner.fileworker.edits.hints import hints_for
from toolrunner.fileworker.edits.match import dominant_ending, folded
from toolrunner.fileworker.edits.patch_grammar import Chunk
from toolrunner.fileworker.edits.splice import spliced

_KEYS: Final[tuple[Callable[[str], str], ...]] = (
    lambda line: line.rstrip("\r\n"),
    lambda line: line.rstrip(),
    lambda line: line.strip(),
    lambda line: folded(line).strip(),
)


@dataclass(frozen=True, slots=True)
class BadChunk:
    """Why a chunk does not apply."""

    line: int
    message: str
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Patched:
    """A text after its chunks, and those that do not apply."""

    text: str
    bad: tuple[BadChunk, ...]


@dataclass
class _Lines:
    """The lines of a text with their comparison keys: exact first, then looser."""

    lines: list[str]
    keys: list[list[str]] = field(default_factory=list)

    def find(self, wanted: Sequence[str], start: int) -> int | None:
        """Return the first location at or after a line."""
        for looseness, key in enumerate(_KEYS):
            if len(self.keys) <= looseness:
                self.keys.append([key(line) for line in self.lines])
            keys, wanted_keys = self.keys[looseness], [key(line) for line in wanted]
            for at in range(start, len(keys) - len(wanted_keys) + 1):
                is_begun = keys[at] == wanted_keys[0]
                if is_begun and keys[at : at + len(wanted_keys)] == wanted_keys:
                    return at
        return None


def patched(text: str, chunks: Sequence[Chunk]) -> Patched:
    """Apply chunks to a text."""
    looked = _Lines(lines_of(text))
    lines = looked.lines
    pieces: list[str] = []
    bad: list[BadChunk] = []
    done = 0  # Lines of the old text that are in the pieces.
    for chunk in chunks:
        place = _place(looked, chunk, done)
        if isinstance(place, BadChunk):
            bad.append(_explained(place, text, chunk))
            continue
        pieces += lines[done:place]
        end = place + len(chunk.old)
        there = "".join(lines[place:end])
        if chunk.old:
            pieces.append(spliced(text, there, _joined(chunk.old), _joined(chunk.new)))
        else:
            pieces.append(_inserted(text, lines, place, chunk.new))
        done = end
    return Patched("".join([*pieces, *lines[done:]]), tuple(bad))


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _inserted(text: str, lines: Sequence[str], place: int, new: Sequence[str]) -> str:
    ending = dominant_ending(text)
    added = "".join(line.removesuffix("\r") + ending for line in new)
    if place == len(lines) and lines and not lines[-1].endswith("\n"):
        return ending + added.removesuffix(ending)
    return added


def _place(looked: _Lines, chunk: Chunk, start: int) -> int | BadChunk:
    for anchor in chunk.anchors:
        found = looked.find((anchor,), start)
        if found is None:
            message = f"the anchor {anchor!r} is not after line {start}; name a line of the file"
            return BadChunk(chunk.line, message)
        start = found + 1
    if not chunk.old:
        return start if chunk.anchors and not chunk.is_at_end else len(looked.lines)
    if chunk.is_at_end:
        place = looked.find(chunk.old, max(start, len(looked.lines) - len(chunk.old)))
        if place is not None:
            return place
    # The anchor may be repeated as the first line of the change.
    place = looked.find(chunk.old, start - 1 if chunk.anchors else start)
    if place is not None:
        return place
    before = looked.find(chunk.old, 0)
    if before is not None:
        message = f"its lines are on line {before + 1}, before what precedes it; put it in order"
        return BadChunk(chunk.line, message)
    message = "its lines are not in the file; read it again and copy them exactly"
    return BadChunk(chunk.line, message)


def _explained(bad: BadChunk, text: str, chunk: Chunk) -> BadChunk:
    return BadChunk(bad.line, bad.message, hints_for(text, _joined(chunk.old), _joined(chunk.new)))
