"""The text of a PDF document as lines, extracted by a separate program."""

import codecs
import os
import subprocess
import sys
import time
from collections.abc import Generator
from typing import Final

from toolrunner.fileworker.content.line_window import LineWindow
from toolrunner.fileworker.content.pdf_program import LOCKED, TEXT_BYTES_MAX
from toolrunner.fileworker.jobs import Readable

READ_BYTES: Final = 64 * 1024
#: Larger documents are not read.
PDF_BYTES_MAX: Final = 64 * 1024 * 1024
PDF_S_MAX: Final = 30.0

TOO_LARGE: Final = "[no text: the document is too large to be read; use a command]\n"
TOO_SLOW: Final = "[the rest could not be read in time; use a command]\n"
TOO_LONG: Final = "\n[there is more text than is read; use a command for the rest]\n"
LOCKED_TEXT: Final = "[no text: the document is locked with a password]\n"
BROKEN: Final = "[no text: the document cannot be read; it may be damaged]\n"


def read_pdf(fd: int, size_bytes: int, window: LineWindow) -> Generator[Readable, None, None]:
    """Pass the text of a document to a window; errors are reported as text."""
    if size_bytes > PDF_BYTES_MAX:
        window.feed(TOO_LARGE)
        return
    os.lseek(fd, 0, os.SEEK_SET)
    until_s = time.monotonic() + PDF_S_MAX
    child = subprocess.Popen(
        [sys.executable, "-I", "-m", "toolrunner.fileworker.content.pdf_program"],
        stdin=fd,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with child:
        assert child.stdout is not None
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        size, is_through = 0, False
        try:
            while time.monotonic() < until_s and not is_through and not window.is_full:
                yield Readable(child.stdout.fileno(), until_s)
                if time.monotonic() < until_s:
                    data = os.read(child.stdout.fileno(), READ_BYTES)
                    window.feed(decoder.decode(data))
                    size, is_through = size + len(data), not data
        finally:
            if not is_through:
                child.kill()
            code = child.wait()
    if is_through and code:
        window.feed(LOCKED_TEXT if code == LOCKED else TOO_SLOW if size else BROKEN)
    elif size >= TEXT_BYTES_MAX:
        window.feed(TOO_LONG)
    elif not is_through and not window.is_full:
        window.feed(TOO_SLOW)
