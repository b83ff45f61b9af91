"""Frames that wait for one client, bounded in bytes."""

import asyncio


class FrameQueue:
    """What was framed and not sent yet.

    It takes a frame when it has room for it, or when it is empty, so that one large frame can pass.
    After `finish` it takes no more, and gives what it has.
    """

    __slots__ = ("_bytes", "_bytes_max", "_filled", "_frames", "_is_finished")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._frames: list[bytes] = []
        self._bytes = 0
        self._is_finished = False
        self._filled = asyncio.Event()

    @property
    def is_finished(self) -> bool:
        """Whether it takes no more."""
        return self._is_finished

    def offer(self, frame: bytes) -> bool:
        """Take a frame; return whether there was room."""
        if self._is_finished:
            return True
        if self._frames and self._bytes + len(frame) > self._bytes_max:
            return False
        self._put(frame)
        return True

    def finish(self, last: bytes = b"", *, drop: bool = False) -> None:
        """Take one last frame, over the bound if need be; `drop` forgets those before it."""
        if self._is_finished:
            return
        if drop:
            self._frames.clear()
            self._bytes = 0
        self._put(last)
        self._is_finished = True

    async def take(self) -> tuple[bytes, bool]:
        """Wait for frames and return all there are, and whether any more can follow."""
        await self._filled.wait()
        frames, self._frames, self._bytes = b"".join(self._frames), [], 0
        if not self._is_finished:
            self._filled.clear()
        return frames, not self._is_finished

    def _put(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._bytes += len(frame)
        self._filled.set()
