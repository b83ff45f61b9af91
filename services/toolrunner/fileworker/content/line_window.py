"""Selection of the lines of a page from a stream of lines."""

from dataclasses import dataclass, field
from typing import Final

from toolrunner.fileworker.protocol import ReadPage

CLIPPED_MARK: Final = " [line cut]"


@dataclass
class LineWindow:
    """Collects the requested lines from a stream."""

    request: ReadPage
    line: int = 1  # The current line.
    kept: list[str] = field(default_factory=list)
    kept_bytes: int = 0
    clipped: int = 0
    is_full: bool = False
    is_open: bool = False  # Whether the current line has begun.
    partial: str = ""

    def feed(self, text: str) -> None:
        """Add the next piece of text."""
        if not text:
            return
        self.is_open = not text.endswith("\n")
        if self.line < self.request.offset_line:
            text = self._skipped(text)
        if self.is_full:
            self.line += text.count("\n")
            return
        pieces = text.split("\n")
        for piece in pieces[:-1]:
            self._extend(piece)
            self._end_line("\n")
        self._extend(pieces[-1])

    def finish(self) -> int:
        """Complete the last line and return the number of lines."""
        if self.is_open:
            self._end_line("")
        return self.line - 1

    def _skipped(self, text: str) -> str:
        at = 0
        while self.line < self.request.offset_line:
            found = text.find("\n", at)
            if found < 0:
                return ""
            at, self.line = found + 1, self.line + 1
        return text[at:]

    def _extend(self, piece: str) -> None:
        # Slightly more than may be shown is kept, to detect that it was cut.
        room = self.request.line_bytes + 2 - len(self.partial)
        if room > 0:
            self.partial += piece[:room]

    def _end_line(self, end: str) -> None:
        if not self.is_full and self.line >= self.request.offset_line:
            self._keep(self.partial, end)
        self.partial = ""
        self.line += 1

    def _keep(self, text: str, end: str) -> None:
        text = text.removesuffix("\r")
        encoded = text.encode(errors="replace")
        is_clipped = len(encoded) > self.request.line_bytes
        if is_clipped:
            cut = encoded[: self.request.line_bytes].decode(errors="ignore")
            text = cut + CLIPPED_MARK
        size = len(text.encode(errors="replace")) + len(end)
        is_over = self.kept_bytes + size > self.request.max_bytes and self.kept
        if is_over or len(self.kept) >= self.request.limit_lines:
            self.is_full = True
            return
        self.kept.append(text + end)
        self.kept_bytes += size
        self.clipped += is_clipped
