"""Reading of a page of lines as a stream, so that memory use does not depend on the file size."""

import codecs
import hashlib
import os
from collections.abc import Generator, Iterator
from typing import Final

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import Root
from toolrunner.fileworker.content.detection import FileType, codec_of, file_type_of, mark_of
from toolrunner.fileworker.content.line_window import LineWindow
from toolrunner.fileworker.content.pdf_text import read_pdf
from toolrunner.fileworker.content.snapshot import (
    READ_BYTES,
    hashed,
    info_of,
    opened_file,
    read_all,
)
from toolrunner.fileworker.jobs import PAUSE, Pause, Readable
from toolrunner.fileworker.protocol import CHUNK_BYTES, BytesHead, Chunk, Page, ReadBytes, ReadPage
from toolrunner.fileworker.values import PathInfo

IMAGE_BYTES_MAX: Final = 3 * 1024 * 1024
#: Above this size not all lines are counted, and there is no etag.
WHOLE_BYTES_MAX: Final = 64 * 1024 * 1024
#: Lines after this offset are not searched.
READ_BYTES_MAX: Final = 1024 * 1024 * 1024
SAMPLE_BYTES: Final = 64 * 1024


def read_page(root: Root, request: ReadPage) -> Generator[Pause | Readable, None, Page]:
    """Return lines of a file, or an image, or its type; pauses in between.

    Raises:
        FileRefused: There is no such file, or the first line is past its end.
    """
    path = root.relative(request.path)
    with opened_file(root, path, shown=request.path) as (fd, result):
        info = info_of(path, result)
        sample = os.read(fd, SAMPLE_BYTES)
        looks = file_type_of(sample)
        if looks.kind == "text":
            return (yield from _text_page(fd, sample, request, info, looks))
        if looks.kind == "pdf":
            return (yield from _pdf_page(fd, request, info, looks))
        image = b""
        if looks.kind == "image":
            os.lseek(fd, 0, os.SEEK_SET)
            image = read_all(fd, IMAGE_BYTES_MAX) or b""
        return _plain(info, looks, hashed(fd, WHOLE_BYTES_MAX), image)


def _plain(info: PathInfo, looks: FileType, etag: str, image: bytes) -> Page:
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
    fd: int, sample: bytes, request: ReadPage, info: PathInfo, looks: FileType
) -> Generator[Pause, None, Page]:
    is_whole = info.size_bytes <= WHOLE_BYTES_MAX
    size = len(sample)
    window = LineWindow(request)
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
    _check_begun(request, total, was_full=was_full)
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


def _pdf_page(
    fd: int, request: ReadPage, info: PathInfo, looks: FileType
) -> Generator[Readable, None, Page]:
    etag = hashed(fd, WHOLE_BYTES_MAX)
    window = LineWindow(request)
    yield from read_pdf(fd, info.size_bytes, window)
    was_full = window.is_full
    total = window.finish()
    _check_begun(request, total, was_full=was_full)
    end_line = request.offset_line + len(window.kept) - 1
    return Page(
        info=info,
        kind=looks.kind,
        text="".join(window.kept),
        start_line=request.offset_line,
        end_line=end_line,
        total_lines=None if was_full else total,
        has_more=window.is_full,
        next_offset_line=end_line + 1 if window.is_full else 0,
        clipped_lines=window.clipped,
        etag=etag,
        media_type=looks.media_type,
    )


def _check_begun(request: ReadPage, total: int, *, was_full: bool) -> None:
    if request.offset_line > max(total, 1) and not was_full:
        text = f"{request.path!r} has {total} lines; begin at one of them"
        refusal = errors.Reason.PAST_END
        raise errors.FileRefused(refusal, text, path=request.path, lines=str(total))


def read_bytes(root: Root, request: ReadBytes) -> Iterator[BytesHead | Chunk]:
    """Yield a head, then the bytes.

    Raises:
        FileRefused: There is no such file, it has changed, or it is too short.
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
        media_type = file_type_of(os.pread(fd, SAMPLE_BYTES, 0)).media_type
        yield BytesHead(info_of(path, result), media_type)
        at = request.offset_bytes
        # Up to the size at opening: the file may grow as fast as it is read.
        length = request.length_bytes or result.st_size
        end = min(at + length, result.st_size)
        while at < end:
            data = os.pread(fd, min(CHUNK_BYTES, end - at), at)
            if not data:
                return
            at += len(data)
            yield Chunk(data)
