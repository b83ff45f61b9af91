"""Reading a page of lines: streamed, so that a large file costs no more than its page."""

import codecs
import hashlib
import os
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Final

from toolrunner.files import errors
from toolrunner.files.beneath import Root
from toolrunner.files.content import Looks, codec_of, looks_of, mark_of
from toolrunner.files.jobs import PAUSE, Pause
from toolrunner.files.protocol import CHUNK_BYTES, BytesHead, Chunk, Page, ReadBytes, ReadPage
from toolrunner.files.snapshots import READ_BYTES, hashed, info_of, opened_file, read_all
from toolrunner.files.values import PathInfo

IMAGE_BYTES_MAX: Final = 3 * 1024 * 1024
#: Above this a page is read without counting all lines and without an etag.
WHOLE_BYTES_MAX: Final = 64 * 1024 * 1024
#: Lines further back in a file are not looked for.
READ_BYTES_MAX: Final = 1024 * 1024 * 1024
SAMPLE_BYTES: Final = 64 * 1024
CLIPPED_MARK: Final = " [line cut]"


@dataclass
class _Window:
    """Collects the lines that are wanted while all of them pass by."""

    request: ReadPage
    line: int = 1  # The line that is being read.
    kept: list[str] = field(default_factory=list)
    kept_bytes: int = 0
    clipped: int = 0
    is_full: bool = False
    is_open: bool = False  # Whether the line that is being read has begun.
    partial: str = ""

    def feed(self, text: str) -> None:
        """Take the next piece of text."""
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
        """Take the last line and return how many there are."""
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
        # A little more than may be shown tells that it was cut.
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


def read_page(root: Root, request: ReadPage) -> Generator[Pause, None, Page]:
    """Return lines of a file, or an image, or what else it is; pauses in between.

    Raises:
        FileRefused: There is no such file, or the first line is past its end.
    """
    path = root.relative(request.path)
    with opened_file(root, path, shown=request.path) as (fd, result):
        info = info_of(path, result)
        sample = os.read(fd, SAMPLE_BYTES)
        looks = looks_of(sample)
        if looks.kind == "text":
            return (yield from _text_page(fd, sample, request, info, looks))
        image = b""
        if looks.kind == "image":
            os.lseek(fd, 0, os.SEEK_SET)
            image = read_all(fd, IMAGE_BYTES_MAX) or b""
        return _plain(info, looks, hashed(fd, WHOLE_BYTES_MAX), image)


def _plain(info: PathInfo, looks: Looks, etag: str, image: bytes) -> Page:
    total = 0 if looks.kind == "empty" else None
    return Page(
        info,
        looks.kind,
        start_line=1,
        total_lines=total,
        etag=etag,
        media_type=looks.media_type,
        image=image,
    )


def _text_page(
    fd: int, sample: bytes, request: ReadPage, info: PathInfo, looks: Looks
) -> Generator[Pause, None, Page]:
    is_whole = info.size_bytes <= WHOLE_BYTES_MAX
    size = len(sample)
    window = _Window(request)
    decoder = codecs.getincrementaldecoder(codec_of(looks.encoding))("replace")
    sha256 = hashlib.sha256(sample)
    is_broken = False
    piece = sample[len(mark_of(looks.encoding)) :]
    while piece:
        text = decoder.decode(piece)
        is_broken = is_broken or "\ufffd" in text
        window.feed(text)
        if window.is_full and not is_whole:
            break
        if size > READ_BYTES_MAX:
            raise errors.too_large(request.path, max(size, info.size_bytes), READ_BYTES_MAX)
        yield PAUSE
        piece = os.read(fd, READ_BYTES)
        size += len(piece)
        # It may grow while it is read.
        is_whole = is_whole and size <= WHOLE_BYTES_MAX
        if is_whole:
            sha256.update(piece)
    window.feed(decoder.decode(b"", final=True))
    was_full = window.is_full
    total = window.finish()
    if request.offset_line > max(total, 1) and not was_full:
        text = f"{request.path!r} has {total} lines; begin at one of them"
        refusal = errors.Reason.PAST_END
        raise errors.FileRefused(refusal, text, path=request.path, lines=str(total))
    end_line = request.offset_line + len(window.kept) - 1
    has_more = window.is_full
    return Page(
        info=info,
        kind="text",
        text="".join(window.kept),
        start_line=request.offset_line,
        end_line=end_line,
        total_lines=total if is_whole or not was_full else None,
        has_more=has_more,
        next_offset_line=end_line + 1 if has_more else 0,
        clipped_lines=window.clipped,
        etag=sha256.hexdigest() if is_whole else "",
        encoding=f"{looks.encoding} (with invalid bytes)" if is_broken else looks.encoding,
        media_type=looks.media_type,
    )


def read_bytes(root: Root, request: ReadBytes) -> Iterator[BytesHead | Chunk]:
    """Yield a head, then the bytes.

    Raises:
        FileRefused: There is no such file, it is another one, or it is shorter.
    """
    path = root.relative(request.path)
    with opened_file(root, path, shown=request.path) as (fd, result):
        if request.if_etag:
            etag = hashed(fd)
            if etag != request.if_etag:
                raise errors.changed(request.path, etag)
        if request.offset_bytes > result.st_size:
            text = f"{request.path!r} has {result.st_size} bytes only"
            raise errors.FileRefused(errors.Reason.PAST_END, text, path=request.path)
        media_type = looks_of(os.pread(fd, SAMPLE_BYTES, 0)).media_type
        yield BytesHead(info_of(path, result), media_type)
        at = request.offset_bytes
        # No further than it went when it was opened: it may grow as fast as it is read.
        length = request.length_bytes or result.st_size
        end = min(at + length, result.st_size)
        while at < end:
            data = os.pread(fd, min(CHUNK_BYTES, end - at), at)
            if not data:
                return
            at += len(data)
            yield Chunk(data)
