"""A program that extracts the text of a PDF document from stdin to stdout.

An untrusted document can take any time and memory, so it is read in a separate process with hard
limits, which its parent may kill.
"""

import os
import resource
import sys
from collections.abc import Iterator
from typing import BinaryIO, Final

MEMORY_BYTES_MAX: Final = 1024 * 1024 * 1024
CPU_S_MAX: Final = 20
PAGES_MAX: Final = 500
TEXT_BYTES_MAX: Final = 4 * 1024 * 1024
#: Exit codes besides 0.
UNREADABLE: Final = 3
LOCKED: Final = 4


def main() -> None:
    """Read the document on standard input."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S_MAX, CPU_S_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    output = os.fdopen(os.dup(1), "wb")
    left = TEXT_BYTES_MAX
    for text in _texts(os.fdopen(0, "rb")):
        data = text.encode(errors="replace")
        output.write(data[:left])
        output.flush()
        left -= len(data)
        if left <= 0:
            return


def _texts(file: BinaryIO) -> Iterator[str]:
    # The import takes a while, and only this program needs it.
    from pypdf import PdfReader
    from pypdf.errors import FileNotDecryptedError

    try:
        reader = PdfReader(file)
        count = len(reader.pages)
    except FileNotDecryptedError:
        sys.exit(LOCKED)
    except Exception:
        sys.exit(UNREADABLE)
    found = False
    for number in range(min(count, PAGES_MAX)):
        try:
            text = reader.pages[number].extract_text().strip()
        except Exception:
            text = "(this page cannot be read)"
        found = found or bool(text)
        yield f"[page {number + 1} of {count}]\n{text}\n" if text else ""
    if not found:
        pages = "1 page" if count == 1 else f"{count} pages"
        yield f"[no text: the {pages} may be pictures; turn them into text with a command]\n"
    if count > PAGES_MAX:
        yield f"[{count - PAGES_MAX} more pages were not read]\n"


if __name__ == "__main__":
    main()
