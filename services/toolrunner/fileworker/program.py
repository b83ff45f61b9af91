"""The file worker program: one thread, one workspace, requests on its standard input."""

import os
import selectors
import sys
import time
import traceback
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from toolrunner.filesystem.beneath import Root
from toolrunner.filesystem.errors import FileRefused, PlanUnknown, Reason
from toolrunner.fileworker.git.command import Git
from toolrunner.fileworker.git.handlers import GitHandlers
from toolrunner.fileworker.handlers import FileHandlers
from toolrunner.fileworker.jobs import Job, Pause, Readable
from toolrunner.fileworker.protocol import (
    PIECES_AHEAD,
    Answer,
    AnswerFrame,
    Frames,
    Planned,
    PlanUnknownAnswer,
    Refused,
    RequestFrame,
    WorkerError,
    frame,
    shown,
)

READ_BYTES: Final = 256 * 1024


@dataclass
class Running:
    """A job with its request number."""

    number: int
    job: Job
    readable: Readable | None = None  # The event it waits for.
    ahead: int = 0  # Parts that were sent and not confirmed.


@dataclass
class FileWorker:
    """Serves its input until EOF; long jobs are interleaved with others."""

    input_fd: int
    output_fd: int
    files: FileHandlers
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    frames: Frames = field(default_factory=lambda: Frames(bytearray()))
    ready: deque[Running] = field(default_factory=deque)
    waiting: dict[int, Running] = field(default_factory=dict)  # For a readable descriptor.
    stopped: dict[int, Running] = field(default_factory=dict)  # For a confirmation.

    def run(self) -> None:
        """Serve until EOF on the input."""
        self.selector.register(self.input_fd, selectors.EVENT_READ)
        while True:
            for key, _ in self.selector.select(self._patience_s()):
                if key.fd != self.input_fd:
                    self._awake(key.data)
                elif not self._read():
                    return
            now_s = time.monotonic()
            for running in [*self.waiting.values()]:
                if running.readable is not None and running.readable.until_s <= now_s:
                    self._awake(running)
            if self.ready:
                self._step(self.ready.popleft())

    def _patience_s(self) -> float | None:
        if self.ready:
            return 0
        until = [running.readable.until_s for running in self.waiting.values() if running.readable]
        return max(0.0, min(until) - time.monotonic()) if until else None

    def _read(self) -> bool:
        data = os.read(self.input_fd, READ_BYTES)
        for body in self.frames.feed(data):
            self._obey(msgspec.msgpack.decode(body, type=RequestFrame))
        return bool(data)

    def _obey(self, ask: RequestFrame) -> None:
        if ask.request is not None:
            self.ready.append(Running(ask.number, self.files.work(ask.request)))
        elif ask.is_closing:
            self._close(ask.number)
        else:
            self._confirm(ask.number)

    def _confirm(self, number: int) -> None:
        """Record the confirmation of a part, and continue its stream if that was waiting for it."""
        if (stopped := self.stopped.pop(number, None)) is not None:
            self.ready.append(stopped)
        for running in (*self.ready, *self.waiting.values()):
            if running.number == number:
                running.ahead -= 1

    def _close(self, number: int) -> None:
        """Close a job whose consumer has left."""
        if (waiting := self.waiting.get(number)) is not None:
            self._awake(waiting)
        if (stopped := self.stopped.pop(number, None)) is not None:
            self.ready.append(stopped)
        for running in [each for each in self.ready if each.number == number]:
            self.ready.remove(running)
            running.job.close()

    def _awake(self, running: Running) -> None:
        if self.waiting.pop(running.number, None) is not None and running.readable is not None:
            self.selector.unregister(running.readable.fd)
            running.readable = None
            self.ready.append(running)

    def _step(self, running: Running) -> None:
        try:
            result = next(running.job)
        except StopIteration as end:
            self._tell(running.number, end.value, is_last=True)
            return
        except FileRefused as refused:
            answer = Refused(refused.reason, str(refused), refused.metadata)
            self._tell(running.number, answer, is_last=True)
            return
        except PlanUnknown:
            self._tell(running.number, PlanUnknownAnswer(), is_last=True)
            return
        except Exception:
            self._tell(running.number, WorkerError(traceback.format_exc()), is_last=True)
            return
        match result:
            case Pause():
                self.ready.append(running)
            case Readable(fd, _):
                running.readable = result
                self.waiting[running.number] = running
                self.selector.register(fd, selectors.EVENT_READ, running)
            case _:
                running.ahead += 1
                if running.ahead < PIECES_AHEAD:
                    self.ready.append(running)
                else:
                    self.stopped[running.number] = running
                self._tell(running.number, result, is_last=False)

    def _tell(self, number: int, answer: Answer, *, is_last: bool) -> None:
        try:
            data = _framed(AnswerFrame(number, answer, is_last))
        except Exception:
            self._close(number)
            data = frame(
                AnswerFrame(number, WorkerError(ascii(traceback.format_exc())), is_last=True)
            )
        view = memoryview(data)
        while view:
            view = view[os.write(self.output_fd, view) :]


def _framed(tell: AnswerFrame) -> bytes:
    try:
        return frame(tell)
    except UnicodeEncodeError:
        if isinstance(tell.answer, Planned):
            # Images must have the real name, not the replaced one that is shown.
            text = "the change leads to a name that is not UTF-8; rename it, then repeat the change"
            paths = {"path": shown(tell.answer.images[0].path)} if tell.answer.images else {}
            refused = Refused(Reason.PATH_FORBIDDEN, text, paths)
            return frame(AnswerFrame(tell.number, refused, tell.is_last))
        return frame(shown(tell))


def main(environment: Mapping[str, str]) -> None:
    """Serve standard input and output, for the current working directory."""
    prefix, program, git, temporary, home = (*sys.argv[1:], "", os.devnull, "")[:5]
    # No other code may write to the output.
    input_fd, output_fd = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)
    root = Root(os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC), prefix)
    repositories = GitHandlers(root, Git(git, environment, Path(temporary)))
    files = FileHandlers(root, program, repositories, home)
    try:
        FileWorker(input_fd, output_fd, files).run()
    except (BrokenPipeError, ConnectionResetError):
        pass
    finally:
        files.close()
