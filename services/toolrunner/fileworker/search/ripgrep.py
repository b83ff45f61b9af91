"""Content search with ripgrep, beneath one directory and without following links.

It opens files by name: only the sandbox of the file worker prevents a link that is swapped in at
that moment from leading out. A single file is passed as an open descriptor, since ripgrep would
follow a link in its place.
"""

import os
import resource
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import msgspec

from toolrunner.filesystem import errors
from toolrunner.fileworker.jobs import Readable
from toolrunner.fileworker.protocol import FileMatches, SearchFiles
from toolrunner.fileworker.search.ripgrep_output import Events, Names, Outcome

READ_BYTES: Final = 64 * 1024
ERROR_BYTES_MAX: Final = 4096
#: Larger files are searched only if named: a line, with all its matches, is in memory.
FILE_BYTES_MAX: Final = 32 * 1024 * 1024
MEMORY_BYTES_MAX: Final = 512 * 1024 * 1024
FAILED: Final = 2

_CASE: Final = {"smart": "-S", "sensitive": "-s", "insensitive": "-i"}


def arguments(request: SearchFiles) -> list[str]:
    """Return the options for a request."""
    words = [
        *("--no-config", "--no-messages", "--no-ignore-parent", "--no-ignore-global"),
        *("--no-require-git", _CASE[request.case]),
        *("--no-mmap", f"--max-filesize={FILE_BYTES_MAX}"),
        # Hidden already, unless hidden names are included; each glob costs time per file.
        *["--glob=!.git"] * (request.include_ignored or bool(request.globs)),
        *[f"--glob={glob}" for glob in request.globs],
        *[f"--type={name}" for name in request.types],
    ]
    match request.mode:
        case "matches":
            # All matches of a file are in its memory; one more shows that there are more.
            words += ["--json", f"--context={request.context_lines}"]
            words += [f"--max-count={request.limit + 1}"]
        case "files":
            words += ["--files-with-matches", "--null"]
        case _:
            words += ["--count", "--with-filename", "--null"]
    words += ["--fixed-strings"] * request.literal + ["--multiline"] * request.multiline
    words += ["--hidden", "--no-ignore"] * request.include_ignored
    return [*words, f"--regexp={request.pattern}", "--"]


@dataclass(frozen=True, slots=True)
class Where:
    """The search path.

    Attributes:
        fd: An open directory, to which paths are relative, or the named file.
        name: The name of that file; empty for a directory.
        accepts: Returns whether a file is included; with globs, ripgrep does not apply hidden and
            ignore rules.
    """

    fd: int
    name: str
    accepts: Callable[[str], bool]


def search(
    program: str, where: Where, request: SearchFiles, until_s: float
) -> Generator[Readable | FileMatches, None, Outcome]:
    """Search one file or directory.

    Raises:
        FileRefused: The pattern cannot be parsed.
    """
    opened = f"/proc/self/fd/{where.fd}"
    child = subprocess.Popen(
        [program, *arguments(request), opened if where.name else "./"],
        cwd="/" if where.name else opened,
        pass_fds=(where.fd,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with child:
        assert child.stdout is not None
        assert child.stderr is not None
        with suppress(OSError):
            resource.prlimit(child.pid, resource.RLIMIT_DATA, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
        kind = Events if request.mode == "matches" else Names
        reader: Events | Names = kind(request, where.accepts)
        is_through = False
        try:
            fd = child.stdout.fileno()
            while not reader.outcome.is_truncated:
                yield Readable(fd, until_s)
                if time.monotonic() >= until_s:
                    reader.outcome.is_timed_out = True
                    break
                data = os.read(fd, READ_BYTES)
                yield from _named(where, reader.feed(data))
                if not data:
                    is_through = True
                    break
            yield from _named(where, reader.rest())
        finally:
            if not is_through:
                child.kill()
            output = os.read(child.stderr.fileno(), ERROR_BYTES_MAX)
            code = child.wait()
        if output and code == FAILED:
            raise _unreadable(request, output)
        if is_through and code < 0:
            # It ran out of memory in some file, and did not report the others.
            reader.outcome.is_truncated = True
        return reader.outcome


def _named(where: Where, files: list[FileMatches]) -> list[FileMatches]:
    """Return results with the name of the file as the caller knows it."""
    if not where.name:
        return files
    return [msgspec.structs.replace(file, path=where.name) for file in files]


def _unreadable(request: SearchFiles, output: bytes) -> errors.FileRefused:
    problem = output.decode(errors="replace").strip().removeprefix("rg: ")
    text = f"the search is not understood: {problem}"
    invalid = errors.Reason.INVALID_PATTERN
    return errors.FileRefused(invalid, text, pattern=request.pattern, problem=problem)
