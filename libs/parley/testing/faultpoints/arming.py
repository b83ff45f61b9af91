"""The arming of a fault point, as a value and as a file."""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Action(StrEnum):
    """The action at a fault point."""

    HOLD = "hold"  # Wait until the point is disarmed; the process goes on.
    KILL = "kill"  # The process ends at once, as by kill -9.
    STOP = "stop"  # The process gets SIGSTOP and waits for SIGCONT.
    BLOCK = "block"  # The event loop is blocked for a while.
    RAISE = "raise"


@dataclass(frozen=True, slots=True)
class Arming:
    """The arming of one fault point.

    Attributes:
        id: Distinguishes this arming from an earlier one of the same point.
        action: The action.
        pid: The only process it applies to; None means all.
        subjects: The only subjects it applies to; empty means all.
        nth: The number of the visit of a subject that triggers it.
        gather: The number of subjects that must have arrived before it triggers; earlier ones wait.
        seconds: How long a block lasts.
    """

    id: str
    action: Action
    pid: int | None = None
    subjects: tuple[str, ...] = ()
    nth: int = 1
    gather: int = 1
    seconds: float = 0.0

    def is_for(self, pid: int, subject: str) -> bool:
        """Return whether it applies to a visit."""
        return self.pid in (None, pid) and (not self.subjects or subject in self.subjects)

    def to_json(self) -> str:
        """Return the content of the file that arms a fault point."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Arming":
        """Parse the file that arms a fault point."""
        fields: dict[str, Any] = json.loads(text)
        fields["action"] = Action(fields["action"])
        fields["subjects"] = tuple(fields.get("subjects", ()))
        return cls(**fields)
