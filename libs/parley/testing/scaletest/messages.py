"""The messages between client processes and their parent, one line of JSON each."""

from enum import StrEnum

import msgspec
from msgspec import Struct

from parley.testing.scaletest.outcome import ChatOutcome


class Command(StrEnum):
    """The commands to a client process."""

    GO = "go"  # Begin.
    FOLLOW_UP = "follow_up"  # Continue after turn 1.
    STOP = "stop"  # Stop unfinished conversations.
    END = "end"  # Check, clean up and return all outcomes.


class Ready(Struct, frozen=True, tag="ready"):
    """The process waits for its first command."""


class ProgressReport(Struct, frozen=True, tag="standing"):
    """The progress of the process."""

    turns: int
    failed: int


class FirstTurnOver(Struct, frozen=True, tag="first_turn_over"):
    """Turn 1 of every chat of the process is over."""


class Conversed(Struct, frozen=True, tag="conversed"):
    """Every conversation in the process is over."""


class Ended(Struct, frozen=True, tag="ended"):
    """The outcome of every chat; the last message."""

    outcomes: list[ChatOutcome]


Line = Ready | ProgressReport | FirstTurnOver | Conversed | Ended

_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


def encoded(line: Line) -> bytes:
    """Return a message as a line."""
    return msgspec.json.encode(line) + b"\n"


def decoded(line: bytes) -> Line:
    """Parse a line.

    Raises:
        msgspec.DecodeError: It is not a valid message.
    """
    return _decoder.decode(line)
