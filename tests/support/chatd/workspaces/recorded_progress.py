"""The progress of a call, as its tool reports it."""

import asyncio
from dataclasses import dataclass, field

from chatd.content.domain.parts import CallProgress
from chatd.content.domain.turn_context import CallProcess, NoProgress, Progress

Update = str | CallProcess | CallProgress


@dataclass(slots=True)
class Reports:
    """Records the progress of a call, and lets a test wait for it.

    Attributes:
        onto: Gets the same.
    """

    onto: Progress = field(default_factory=NoProgress)
    updates: list[Update] = field(default_factory=list)
    news: asyncio.Queue[Update] = field(default_factory=asyncio.Queue)

    def report(self, tool_call_id: str, update: Update) -> None:
        """Record it."""
        self.onto.report(tool_call_id, update)
        self.updates.append(update)
        self.news.put_nowait(update)

    def reset(self, tool_call_id: str) -> None:
        """Refuse it."""
        raise AssertionError("no tool resets its output")

    @property
    def text(self) -> str:
        """All text so far."""
        return "".join(update for update in self.updates if isinstance(update, str))

    async def until_text(self, text: str) -> None:
        """Wait until the text contains something."""
        while text not in self.text:
            await self.news.get()
