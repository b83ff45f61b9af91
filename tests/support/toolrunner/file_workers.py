"""The files of a directory, asked for in this process or in a program of its own."""

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

import msgspec

from toolrunner.files.worker_pool import find_ripgrep
from toolrunner.filesystem.beneath import Root
from toolrunner.filesystem.errors import FileRefused, Reason
from toolrunner.fileworker.handlers import FileHandlers
from toolrunner.fileworker.jobs import pieces
from toolrunner.fileworker.protocol import (
    Answer,
    AnswerFrame,
    Commit,
    Done,
    Frames,
    PlanDelete,
    PlanEdits,
    PlanMove,
    Planned,
    PlanPatch,
    PlanRestore,
    PlanWrite,
    Refused,
    Request,
    RequestFrame,
    frame,
)


class FileWorker(Protocol):
    """Answers requests about files."""

    def ask(self, request: Request) -> list[Answer]: ...


@dataclass
class InProcessFileWorker:
    """The library in this process."""

    files: FileHandlers

    def ask(self, request: Request) -> list[Answer]:
        return list(pieces(self.files.work(request)))


@dataclass
class FileWorkerProcess:
    """The program, asked one thing after another."""

    output: IO[bytes]
    input: IO[bytes]
    pid: int
    frames: Frames = field(default_factory=lambda: Frames(bytearray()))
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def ask(self, request: Request) -> list[Answer]:
        number = next(self.numbers)
        self.input.write(frame(RequestFrame(number, request)))
        answers: list[Answer] = []
        while True:
            for body in self.frames.feed(os.read(self.output.fileno(), 65536)):
                tell = msgspec.msgpack.decode(body, type=AnswerFrame)
                if isinstance(tell.answer, Refused):
                    refused = tell.answer
                    raise FileRefused(Reason(refused.reason), refused.text, **refused.metadata)
                answers.append(tell.answer)
                if tell.is_last:
                    return answers
                self.input.write(frame(RequestFrame(number, None)))


@contextmanager
def here(directory: Path) -> Iterator[FileWorker]:
    """Work on the files of a directory in this process."""
    files = FileHandlers(Root.open_directory(str(directory)), find_ripgrep())
    try:
        yield InProcessFileWorker(files)
    finally:
        files.close()


@contextmanager
def program(directory: Path) -> Iterator[FileWorkerProcess]:
    """Work on the files of a directory in a program of its own."""
    child = subprocess.Popen(
        [sys.executable, "-I", "-m", "toolrunner.fileworker", str(directory), find_ripgrep()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        cwd=directory,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    with child:
        yield FileWorkerProcess(child.stdout, child.stdin, child.pid)
        child.stdin.close()
        assert child.wait(10) == 0


def change(
    worker: FileWorker,
    request: PlanWrite | PlanEdits | PlanPatch | PlanRestore | PlanMove | PlanDelete,
) -> Planned:
    """Plan, and commit if nothing speaks against it."""
    [planned] = worker.ask(request)
    assert isinstance(planned, Planned)
    if not planned.problems:
        worker.ask(Commit(request.token))
    return planned


def delete(worker: FileWorker, path: str, *, recursive: bool = True) -> int:
    """Delete an entry, and return how many went."""
    [planned] = worker.ask(PlanDelete("d", path, recursive))
    assert isinstance(planned, Planned)
    if not planned.images:
        return 0
    [done] = worker.ask(Commit("d"))
    assert isinstance(done, Done)
    return done.count


def move(worker: FileWorker, path: str, new_path: str, *, overwrite: bool = False) -> Planned:
    """Move an entry."""
    return change(worker, PlanMove("m", path, new_path, overwrite))


def write(worker: FileWorker, path: str, content: bytes, **fields: object) -> Planned:
    """Write a file as a whole."""
    token = os.urandom(4).hex()
    return change(worker, PlanWrite(token, path, content, **fields))  # type: ignore[arg-type]
