"""Putting the chunks of a patch into a text: in order, each after the one before."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from toolrunner.files.diffs import lines_of
from toolrunner.files.hints import hints_for
from toolrunner.files.matching import dominant_ending, folded
from toolrunner.files.patch_grammar import Chunk
from toolrunner.files.splicing import spliced

_KEYS: Final[tuple[Callable[[str], str], ...]] = (
    lambda line: line.rstrip("\r\n"),
    lambda line: line.rstrip(),
    lambda line: line.strip(),
    lambda line: folded(line).strip(),
)


@dataclass(frozen=True, slots=True)
class BadChunk:
    """Why a chunk does not fit."""

    line: int
    message: str
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Patched:
    """A text after its chunks, and those that do not fit."""

    text: str
    bad: tuple[BadChunk, ...]


def patched(text: str, chunks: Sequence[Chunk]) -> Patched:
    """Return what the chunks make of a text."""
    lines = lines_of(text)
    pieces: list[str] = []
    bad: list[BadChunk] = []
    done = 0  # Lines of the old text that are in the pieces.
    for chunk in chunks:
        place = _place(lines, chunk, done)
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


def _place(lines: Sequence[str], chunk: Chunk, start: int) -> int | BadChunk:
    for anchor in chunk.anchors:
        found = _find(lines, (anchor,), start)
        if found is None:
            message = f"the anchor {anchor!r} is not after line {start}; name a line of the file"
            return BadChunk(chunk.line, message)
        start = found + 1
    if not chunk.old:
        return start if chunk.anchors and not chunk.is_at_end else len(lines)
    if chunk.is_at_end:
        place = _find(lines, chunk.old, max(start, len(lines) - len(chunk.old)))
        if place is not None:
            return place
    # The anchor may be repeated as the first line of the change.
    place = _find(lines, chunk.old, start - 1 if chunk.anchors else start)
    if place is not None:
        return place
    before = _find(lines, chunk.old, 0)
    if before is not None:
        message = f"its lines are on line {before + 1}, before what precedes it; put it in order"
        return BadChunk(chunk.line, message)
    message = "its lines are not in the file; read it again and copy them exactly"
    return BadChunk(chunk.line, message)


def _find(lines: Sequence[str], wanted: Sequence[str], start: int) -> int | None:
    for key in _KEYS:
        keys = [key(line) for line in lines]
        wanted_keys = [key(line) for line in wanted]
        for at in range(start, len(keys) - len(wanted_keys) + 1):
            if keys[at : at + len(wanted_keys)] == wanted_keys:
                return at
    return None


def _explained(bad: BadChunk, text: str, chunk: Chunk) -> BadChunk:
    return BadChunk(bad.line, bad.message, hints_for(text, _joined(chunk.old), _joined(chunk.new)))
