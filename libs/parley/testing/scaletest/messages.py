"""What client processes and the one that started them say to each other, a line of JSON each."""

from enum import StrEnum

import msgspec
from msgspec import Struct

from parley.testing.scaletest.outcome import ChatOutcome


class Command(StrEnum):
    """What a client process is told."""

    GO = "go"  # Begin.
    FOLLOW_UP = "follow_up"  # Go on behind turn 1.
    STOP = "stop"  # Give up what is not over.
    END = "end"  # Check, clean up and tell what became of everything.


class Ready(Struct, frozen=True, tag="ready"):
    """The process waits for its word."""


class ProgressReport(Struct, frozen=True, tag="standing"):
    """How far the process has come."""

    turns: int
    failed: int


class FirstTurnOver(Struct, frozen=True, tag="first_turn_over"):
    """Everybody in the process has had turn 1."""


class Conversed(Struct, frozen=True, tag="conversed"):
    """Every conversation in the process is over."""


class Ended(Struct, frozen=True, tag="ended"):
    """What became of every chat; nothing comes after it."""

    outcomes: list[ChatOutcome]


Line = Ready | ProgressReport | FirstTurnOver | Conversed | Ended

_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


def encoded(line: Line) -> bytes:
    """Return a line."""
    return msgspec.json.encode(line) + b"\n"


def decoded(line: bytes) -> Line:
    """Return what a line says.

    Raises:
        msgspec.DecodeError: It says nothing of this.
    """
    return _decoder.decode(line)
