"""A queue of frames for one client, limited in bytes."""

import asyncio


class FrameQueue:
    """The frames that are not sent yet.

    It accepts a frame if it fits, or if the queue is empty, so that one large frame can pass. After
    `finish` it accepts no more, and returns the rest.
    """

    __slots__ = ("_bytes", "_bytes_max", "_emptied", "_filled", "_frames", "_is_finished")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._frames: list[bytes] = []
        self._bytes = 0
        self._is_finished = False
        self._filled = asyncio.Event()
        self._emptied = asyncio.Event()
        self._emptied.set()

    @property
    def is_finished(self) -> bool:
        """Whether it accepts no more frames."""
        return self._is_finished

    def offer(self, frame: bytes) -> bool:
        """Queue a frame; return False if it does not fit."""
        if self._is_finished:
            return True
        if self._frames and self._bytes + len(frame) > self._bytes_max:
            return False
        self._put(frame)
        return True

    def finish(self, last: bytes = b"", *, drop: bool = False) -> None:
        """Queue one last frame, even over the limit; `drop` discards those before it."""
        if self._is_finished:
            return
        if drop:
            self._frames.clear()
            self._bytes = 0
        self._put(last)
        self._is_finished = True

    async def take(self) -> tuple[bytes, bool]:
        """Wait for frames; return all of them, and whether more can follow."""
        await self._filled.wait()
        frames, self._frames, self._bytes = b"".join(self._frames), [], 0
        if not self._is_finished:
            self._filled.clear()
            self._emptied.set()
        return frames, not self._is_finished

    async def wait_empty(self) -> None:
        """Wait until all frames have been taken; without end once it accepts no more.

        Of several callers that wait, one that queues a frame makes the others wait again.
        """
        while not self._emptied.is_set():
            await self._emptied.wait()

    def _put(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._bytes += len(frame)
        self._filled.set()
        self._emptied.clear()
