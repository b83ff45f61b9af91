"""The channel to a file worker: concurrent requests, answers by request number."""

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
    AnswerFrame,
    Frames,
    PlanUnknownAnswer,
    Refused,
    Request,
    RequestFrame,
    WorkerError,
    frame,
)
from toolrunner.primitives.errors import FileWorkerGone
from toolrunner.primitives.pipe_end import read_pipe, write_pipe

logger = logging.getLogger(__name__)

#: For requests without a limit of their own.
ANSWER_S: Final = 60.0


class _Input(asyncio.BaseProtocol):
    """The worker's input; its exit is detected by its output."""


class FileWorkerChannel(asyncio.Protocol):
    """The service's ends of the worker's output and input pipes.

    Attributes:
        gone: Set when the worker has closed its end.
    """

    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self._frames = Frames(bytearray())
        self._answers: dict[int, asyncio.Queue[AnswerFrame | None]] = {}
        self._number = 0
        self._reading: asyncio.BaseTransport | None = None
        self._writing: asyncio.WriteTransport | None = None

    @classmethod
    async def opened(cls, output_fd: int, input_fd: int) -> "FileWorkerChannel":
        """Start to use the descriptors; they are closed with the channel."""
        channel = cls()
        try:
            channel._writing = await write_pipe(_Input(), input_fd)
        except BaseException:
            os.close(output_fd)
            raise
        try:
            channel._reading = await read_pipe(channel, output_fd)
        except BaseException:
            channel._writing.close()
            raise
        return channel

    def data_received(self, data: bytes) -> None:
        """Pass answers to their waiters."""
        for body in self._frames.feed(data):
            tell = msgspec.msgpack.decode(body, type=AnswerFrame)
            if (answers := self._answers.get(tell.number)) is not None:
                answers.put_nowait(tell)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wake all waiters."""
        self.gone.set()
        for answers in self._answers.values():
            answers.put_nowait(None)

    def close(self) -> None:
        """Close the pipes, whereupon the worker exits."""
        for transport in (self._reading, self._writing):
            if transport is not None:
                transport.close()

    @property
    def is_busy(self) -> bool:
        """Whether a request waits for an answer."""
        return bool(self._answers)

    async def ask(self, request: Request, *, limit_s: float = ANSWER_S) -> Answer:
        """Return the answer to a request with a single answer.

        Raises:
            FileRefused: It is refused.
            FileWorkerGone: The worker exited, or the timeout expired.
        """
        last: Answer | None = None
        async for answer in self.stream(request, limit_s=limit_s):
            last = answer
        assert last is not None, "every stream has a last answer"
        return last

    async def stream(
        self, request: Request, *, limit_s: float = ANSWER_S
    ) -> AsyncGenerator[Answer, None]:
        """Yield the answers to a request; few are produced ahead of the consumer.

        Raises:
            FileRefused: It is refused.
            FileWorkerGone: The worker exited, or the timeout of one answer expired.
        """
        self._number += 1
        number = self._number
        answers = self._answers[number] = asyncio.Queue()
        is_over = False
        try:
            self._send(RequestFrame(number, request))
            while not is_over:
                tell = await _next(answers, limit_s)
                is_over = tell.is_last
                yield _checked(tell.answer)
                if not is_over:
                    self._send(RequestFrame(number, None))
        finally:
            del self._answers[number]
            if not is_over:
                with suppress(FileWorkerGone):
                    self._send(RequestFrame(number, None, is_closing=True))

    def _send(self, ask: RequestFrame) -> None:
        if self._writing is None or self._writing.is_closing() or self.gone.is_set():
            raise FileWorkerGone
        self._writing.write(frame(ask))


async def _next(answers: "asyncio.Queue[AnswerFrame | None]", limit_s: float) -> AnswerFrame:
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
        case PlanUnknownAnswer():
            raise FileWorkerGone("it was started anew", is_replaced=True)
        case WorkerError(trace):
            logger.error("the program that works on files has a defect", extra={"trace": trace})
            raise FileWorkerGone("it has a defect")
        case _:
            return answer
