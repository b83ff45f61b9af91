"""A stream of two turns as a healthy Parley sends it, one of them with a tool call."""

import json
from dataclasses import dataclass
from typing import Any

from parley.testing.scaletest.events import Document, Message, decode


@dataclass(frozen=True, slots=True)
class Told:
    """One event."""

    kind: str
    cursor: str
    data: dict[str, Any]

    @property
    def document(self) -> Document:
        """What a checker takes."""
        return decode(json.dumps(self.data).encode())


def message(number: int, role: str, text: str, revision: int) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"id": number, "role": role, "revision": revision, "content": content}


def part(history: int, seq: int, text: str, attempt: int = 1) -> dict[str, Any]:
    return {
        "role": "assistant",
        "part": {"type": "text", "text": text},
        "history_version": history,
        "generation_attempt": attempt,
        "seq": seq,
        "part_index": 0,
    }


MESSAGES = (
    message(1, "user", "hello", 1),
    message(2, "assistant", "one two three", 2),
    message(3, "user", "hello", 3),
    message(4, "assistant", "looking", 4),
    message(5, "tool", "found", 6),
    message(6, "assistant", "four five", 7),
)


def _running(cursor: str) -> Told:
    return Told("status", cursor, {"status": {"status": "running", "place_in_line": 0}})


def _waiting(cursor: str) -> Told:
    return Told("status", cursor, {"status": {"status": "waiting", "place_in_line": 0}})


def _message(cursor: str, number: int) -> Told:
    return Told("message", cursor, {"message": MESSAGES[number - 1]})


def _part(cursor: str, history: int, seq: int, text: str) -> Told:
    return Told("message_part", cursor, {"message_part": part(history, seq, text)})


HEALTHY = (
    _message("a1b2c3-0.1.1.0.0.0", 1),
    _running("a1b2c3-1.1.2.1.1.0"),
    _part("a1b2c3-1.1.2.1.1.1", 1, 1, "one "),
    _part("a1b2c3-1.1.2.1.1.2", 1, 2, "two "),
    _part("a1b2c3-1.1.2.1.1.3", 1, 3, "three"),
    _message("a1b2c3-1.2.200000000000000002.1.1.3", 2),
    _waiting("a1b2c3-1.2.101000000000000002.1.1.3"),
    Told("preview_reset", "a1b2c3-2.2.1.2.0.0", {}),
    _message("a1b2c3-2.3.100000000000000003.2.0.0", 3),
    _running("a1b2c3-2.3.201000000000000002.2.0.0"),
    Told("preview_reset", "a1b2c3-3.3.2.3.1.0", {}),
    _part("a1b2c3-3.3.2.3.1.1", 3, 1, "look"),
    _part("a1b2c3-3.3.2.3.1.2", 3, 2, "ing"),
    _message("a1b2c3-3.4.200000000000000004.3.1.2", 4),
    Told("preview_reset", "a1b2c3-4.4.2.4.1.0", {}),
    _message("a1b2c3-5.6.200000000000000005.4.1.0", 5),
    Told("preview_reset", "a1b2c3-6.6.2.6.1.0", {}),
    _part("a1b2c3-6.6.2.6.1.1", 6, 1, "four "),
    _message("a1b2c3-6.7.200000000000000006.6.1.1", 6),
    _waiting("a1b2c3-6.7.101000000000000002.6.1.1"),
    Told("preview_reset", "a1b2c3-7.7.1.7.0.0", {}),
)


def stored() -> list[Message]:
    """Return the messages as the chat has them, newest first."""
    document = [decode(json.dumps({"message": each}).encode()).message for each in MESSAGES[::-1]]
    return [each for each in document if each is not None]
