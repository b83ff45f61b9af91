"""Sends the steps of an answer over time on one connection."""

import asyncio
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import assert_never

from parley.testing.llm_mock.playback.steps import Drop, Pause, Reset, Send, Stall, Step
from parley.testing.llm_mock.playback.timers import Timer, Timers

WRITE_BYTES = 64 * 1024
NO_LINGER = struct.pack("ii", 1, 0)


@dataclass(slots=True)
class Player:
    """Plays one answer, in callbacks of the schedule and of the connection.

    Attributes:
        steps: The timed steps; an iterator that is consumed.
        transport: The transport to send on.
        schedule: The timers of its pauses.
        on_end: Is called after the last step, unless that is an endless stall.
        is_full: Whether the write buffer is full.
    """

    steps: Iterator[Step]
    transport: asyncio.Transport
    schedule: Timers
    on_end: Callable[[], None]
    is_full: bool
    _next: Timer | None = None
    _is_held_up: bool = False

    def stop(self) -> None:
        """Stop sending."""
        if self._next is not None:
            self.schedule.call_off(self._next)

    def resume(self) -> None:
        """Continue after the client has read, unless a pause is running."""
        self.is_full = False
        if self._is_held_up:
            self.go_on()

    def go_on(self) -> None:
        """Send all steps up to the next pause, in one write."""
        self._is_held_up = self.is_full
        if self.is_full or self.transport.is_closing():
            return
        pieces: list[bytes] = []
        size = 0
        for step in self.steps:
            if not isinstance(step, Send):
                self._write(pieces)
                self._follow(step)
                return
            pieces.append(step.data)
            size += len(step.data)
            if size > WRITE_BYTES:
                # Lets other callbacks run, and lets the client disconnect from an endless answer.
                self._write(pieces)
                asyncio.get_running_loop().call_soon(self.go_on)
                return
        self._write(pieces)
        self.on_end()

    def _write(self, pieces: list[bytes]) -> None:
        if pieces:
            self.transport.write(b"".join(pieces))

    def _follow(self, step: Pause | Stall | Drop | Reset) -> None:
        match step:
            case Pause(seconds):
                self._next = self.schedule.after(seconds, self.go_on)
            case Stall():
                pass
            case Drop():
                self.transport.close()
                self.on_end()
            case Reset():
                self._reset()
                self.on_end()
            case _:
                assert_never(step)

    def _reset(self) -> None:
        """Send a RST instead of a FIN."""
        raw = self.transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self.transport.abort()
