"""Arming the points of running chatd processes, and seeing who stands at them."""

import json
import time
from dataclasses import dataclass
from pathlib import Path

from parley.testing.faultpoints import Action, Arming

REACHED = "reached.jsonl"


@dataclass(frozen=True, slots=True)
class FaultPoints:
    """The directory that a stack's processes look into."""

    directory: Path

    def arm(
        self,
        point: str,
        action: Action = Action.HOLD,
        *,
        pid: int | None = None,
        subjects: tuple[str, ...] = (),
        nth: int = 1,
        seconds: float = 0.0,
    ) -> None:
        """Ask for something at a point from now on."""
        arming = Arming(str(time.monotonic_ns()), action, pid, subjects, nth, seconds=seconds)
        self._write(point, arming.to_json())

    def release(self, point: str) -> None:
        """Ask for nothing at one point any more: whoever is held there goes on."""
        (self.directory / point).unlink()

    def disarm(self) -> None:
        """Ask for nothing any more: whoever is held goes on."""
        for file in self.directory.iterdir():
            if file.name != REACHED:
                file.unlink()

    def set_clock(self, pid: int, offset_s: float) -> None:
        """Let the wall clock of one process be wrong."""
        self._write("clock", json.dumps({"pid": pid, "offset_s": offset_s}))

    def at(self, point: str) -> set[str]:
        """Return who came to a point since it was armed."""
        return set(self._visitors(point))

    def visits(self, point: str) -> int:
        """Return how often anybody came to a point since it was armed."""
        return len(self._visitors(point))

    def _visitors(self, point: str) -> list[str]:
        try:
            arming = Arming.from_json((self.directory / point).read_text())
            lines = (self.directory / REACHED).read_text().splitlines()
        except FileNotFoundError:
            return []
        found = map(json.loads, lines)
        return [each["subject"] for each in found if each["arming"] == arming.id]

    def forget(self) -> None:
        """Drop the list of who came where."""
        (self.directory / REACHED).unlink(missing_ok=True)

    def _write(self, name: str, text: str) -> None:
        temporary = self.directory.parent / f"{name}.{time.monotonic_ns()}"
        temporary.write_text(text)
        temporary.rename(self.directory / name)
