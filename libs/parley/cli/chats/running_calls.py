"""The lines that a terminal shows of running calls: output, process and progress.

A terminal cannot take back lines. Output that a stream repeats after a reset is shown from where
the lines before it end.
"""

from collections.abc import Iterator
from typing import Any

LINES_MAX = 10
LINE_CHARACTERS_MAX = 400
#: How much of the output shown is remembered, to be found again in output that is repeated.
TAIL_CHARACTERS = 256


class RunningCalls:
    """The running calls of a chat."""

    def __init__(self) -> None:
        self._process_ids: dict[str, str] = {}
        self._progress: dict[str, str] = {}
        self._tails: dict[str, str] = {}
        self._rests: dict[str, str] = {}
        self._restarted: set[str] = set()

    def restart(self) -> None:
        """Expect the output of all calls from its beginning, as another process shows it."""
        self._restarted = set(self._tails)

    def take(self, part: dict[str, Any]) -> list[str]:
        """Return the lines that a live part of a running call adds."""
        call, name = str(part.get("tool_call_id")), part.get("tool_name", "tool")
        lines = []
        process_id = part.get("process_id")
        if process_id and self._process_ids.get(call) != process_id:
            self._process_ids[call] = process_id
            lines.append(f"  {name} runs as process {process_id}")
        if isinstance(progress := part.get("progress"), dict):
            told = _progress_words(progress)
            if self._progress.get(call) != told:
                self._progress[call] = told
                lines.append(f"  {name} {told}")
        if delta := part.get("result_delta", ""):
            is_repeated = bool(part.get("result_reset")) or call in self._restarted
            self._restarted.discard(call)
            lines += self._output(call, delta, is_repeated)
        return lines

    def end(self, call: str) -> list[str]:
        """Forget a call that has its result; return the incomplete last line of its output."""
        rest = self._rests.pop(call, "")
        for known in (self._process_ids, self._progress, self._tails):
            known.pop(call, None)
        return list(_output_lines([rest])) if rest else []

    def _output(self, call: str, delta: str, is_repeated: bool) -> list[str]:
        text = self._rests.get(call, "") + delta
        tail = self._tails.get(call, "")
        if is_repeated:
            _, found, after = delta.rpartition(tail) if tail else ("", "", delta)
            text = after if found else delta
        *lines, self._rests[call] = text.split("\n")
        if lines:
            self._tails[call] = (tail + "\n".join(lines) + "\n")[-TAIL_CHARACTERS:]
        return list(_output_lines(lines))


def _output_lines(lines: list[str]) -> Iterator[str]:
    if len(lines) > LINES_MAX:
        yield f"  | ... {len(lines) - LINES_MAX} lines"
    for line in lines[-LINES_MAX:]:
        # A line that was written over begins again behind a carriage return.
        shown = line.rstrip("\r").rpartition("\r")[2]
        yield f"  | {shown[:LINE_CHARACTERS_MAX]}"


def _progress_words(progress: dict[str, Any]) -> str:
    done, total = progress.get("progress", 0), progress.get("total")
    share = f"{done:g}" if total is None else f"{done:g}/{total:g}"
    return f"{share} {progress.get('message', '')}".rstrip()
