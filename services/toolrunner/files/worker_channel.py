"""The channel to a program that works on files: many questions at a time, answers by number."""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Final

import msgspec

from toolrunner.filesystem.errors import FileRefused, Reason
from toolrunner.fileworker.protocol import (
    Answer,
    Ask,
    Defect,
    Forgotten,
    Frames,
    Refused,
    Request,
    Tell,
    frame,
)
from toolrunner.primitives.errors import FileWorkerGone

logger = logging.getLogger(__name__)

#: For everything that has no limit of its own.
ANSWER_S: Final = 60.0


class _Input(asyncio.BaseProtocol):
    """The program's input; that it ended shows in its output."""


class FileWorkerChannel(asyncio.Protocol):
    """Our ends of the program's output and input.

    Attributes:
        gone: Set when the other end is no more.
    """

    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self._frames = Frames(bytearray())
        self._answers: dict[int, asyncio.Queue[Tell | None]] = {}
        self._number = 0
        self._reading: asyncio.BaseTransport | None = None
        self._writing: asyncio.WriteTransport | None = None

    @classmethod
    async def opened(cls, output_fd: int, input_fd: int) -> "FileWorkerChannel":
        """Begin to use the descriptors; they are closed with the channel."""
        channel = cls()
        loop = asyncio.get_running_loop()
        output, input_ = os.fdopen(output_fd, "rb", 0), os.fdopen(input_fd, "wb", 0)
        channel._writing, _ = await loop.connect_write_pipe(_Input, input_)
        channel._reading, _ = await loop.connect_read_pipe(lambda: channel, output)
        return channel

    def data_received(self, data: bytes) -> None:
        """Hand answers to those who wait for them."""
        for body in self._frames.feed(data):
            tell = msgspec.msgpack.decode(body, type=Tell)
            if (answers := self._answers.get(tell.number)) is not None:
                answers.put_nowait(tell)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell everyone who waits."""
        self.gone.set()
        for answers in self._answers.values():
            answers.put_nowait(None)

    def close(self) -> None:
        """Hang up, whereupon the program ends."""
        for transport in (self._reading, self._writing):
            if transport is not None:
                transport.close()

    @property
    def is_busy(self) -> bool:
        """Whether someone waits for an answer."""
        return bool(self._answers)

    async def ask(self, request: Request, *, limit_s: float = ANSWER_S) -> Answer:
        """Return the answer to a request that is no stream.

        Raises:
            FileRefused: It is refused.
            FileWorkerGone: The program ended, or takes too long.
        """
        last: Answer | None = None
        async for answer in self.stream(request, limit_s=limit_s):
            last = answer
        assert last is not None, "every stream has a last answer"
        return last

    async def stream(
        self, request: Request, *, limit_s: float = ANSWER_S
    ) -> AsyncGenerator[Answer, None]:
        """Yield the answers to a request; few more are made than are taken.

        Raises:
            FileRefused: It is refused.
            FileWorkerGone: The program ended, or takes too long for one answer.
        """
        self._number += 1
        number = self._number
        answers = self._answers[number] = asyncio.Queue()
        is_over = False
        try:
            self._send(Ask(number, request))
            while not is_over:
                tell = await _next(answers, limit_s)
                is_over = tell.is_last
                yield _checked(tell.answer)
                if not is_over:
                    self._send(Ask(number, None))
        finally:
            del self._answers[number]
            if not is_over:
                with suppress(FileWorkerGone):
                    self._send(Ask(number, None, is_closing=True))

    def _send(self, ask: Ask) -> None:
        if self._writing is None or self._writing.is_closing() or self.gone.is_set():
            raise FileWorkerGone
        self._writing.write(frame(ask))


async def _next(answers: "asyncio.Queue[Tell | None]", limit_s: float) -> Tell:
    try:
        async with asyncio.timeout(limit_s):
            tell = await answers.get()
    except TimeoutError as error:
        raise FileWorkerGone(f"it did not answer in {limit_s:g} s") from error
    if tell is None:
        raise FileWorkerGone
    return tell


def _checked(answer: Answer) -> Answer:
    match answer:
        case Refused(reason, text, metadata):
            raise FileRefused(Reason(reason), text, **metadata)
        case Forgotten():
            raise FileWorkerGone("it was started anew", is_replaced=True)
        case Defect(trace):
            logger.error("the program that works on files has a defect", extra={"trace": trace})
            raise FileWorkerGone("it has a defect")
        case _:
            return answer
