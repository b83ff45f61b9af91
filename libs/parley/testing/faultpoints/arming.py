"""What a test asks of a point, as a value and as the file that says it."""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Action(StrEnum):
    """What happens at a point."""

    HOLD = "hold"  # Wait until the point is disarmed; the process goes on.
    KILL = "kill"  # The process ends at once, as by kill -9.
    STOP = "stop"  # The process stops until somebody lets it continue.
    BLOCK = "block"  # The event loop does nothing for a while.
    RAISE = "raise"


@dataclass(frozen=True, slots=True)
class Arming:
    """What is asked of one point.

    Attributes:
        id: Tells this arming from an earlier one of the same point.
        action: What happens.
        pid: The only process it is for; None means all.
        subjects: The only subjects it is for; empty means all.
        nth: The visit of a subject that counts.
        gather: Subjects that must be there before anything happens; those before wait.
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
        """Return whether a visit is meant."""
        return self.pid in (None, pid) and (not self.subjects or subject in self.subjects)

    def to_json(self) -> str:
        """Return the text of the file that arms a point."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Arming":
        """Read the file that arms a point."""
        fields: dict[str, Any] = json.loads(text)
        return cls(
            **{
                **fields,
                "action": Action(fields["action"]),
                "subjects": tuple(fields.get("subjects", ())),
            }
        )
