"""All chats of one client process: started together, checked and cleaned up at the end."""

import asyncio
import random  # noqa: TID251 (only the type; chance is an argument)
from collections.abc import Awaitable, Callable, Iterable

from parley.clock import Clock
from parley.testing.scaletest.connections import Dialer, Requests
from parley.testing.scaletest.conversation import Conversation, ConversationResources
from parley.testing.scaletest.follower import DisconnectSchedule
from parley.testing.scaletest.outcome import ChatOutcome
from parley.testing.scaletest.plan import Plan


class ChatGroup:
    """The chats of one process.

    Attributes:
        turns: The number of finished turns.
    """

    def __init__(
        self, plan: Plan, tasks: asyncio.TaskGroup, *, clock: Clock, rng: random.Random
    ) -> None:
        self.turns = 0
        dialer = Dialer(plan.target)
        self._plan = plan
        self._requests = Requests(dialer)
        self._rng = rng
        self._waiting = 0
        self._everybody_waits = asyncio.Event()
        self._released = asyncio.Event()
        means = ConversationResources(
            plan,
            self._requests,
            dialer,
            tasks,
            clock,
            self._first_turn_over,
            self._turn_over,
        )
        self._conversations = [
            Conversation(
                plan.first + number,
                means,
                DisconnectSchedule(plan.cut_every, random.Random(rng.getrandbits(64))),
            )
            for number in range(plan.chats)
        ]

    @property
    def failed(self) -> int:
        """The number of failed chats."""
        return sum(each.outcome.failure is not None for each in self._conversations)

    async def converse(self) -> None:
        """Run all conversations."""
        async with asyncio.TaskGroup() as tasks:
            for conversation in self._conversations:
                delay_s = self._rng.random() * self._plan.start_jitter_s
                tasks.create_task(self._one(conversation, delay_s))

    async def first_turns_done(self) -> None:
        """Wait until turn 1 of every chat is over."""
        await self._everybody_waits.wait()

    def release(self) -> None:
        """Let every chat continue after turn 1."""
        self._released.set()

    def stop(self, problem: str) -> None:
        """Stop the conversations that are not over."""
        for conversation in self._conversations:
            conversation.stop(problem)

    async def end(self) -> tuple[ChatOutcome, ...]:
        """Check every chat, delete it unless it is kept, and return all outcomes."""
        await self._together(each.end for each in self._conversations)
        if not self._plan.keeps:
            await self._together(each.delete for each in self._conversations)
        self._requests.close()
        return tuple(each.outcome for each in self._conversations)

    async def _one(self, conversation: Conversation, delay_s: float) -> None:
        await conversation.run(delay_s)
        if conversation.outcome.turns_completed == 0:
            # It failed in turn 1, and the others must not wait for it.
            self._arrive()

    async def _first_turn_over(self) -> None:
        self._arrive()
        if self._plan.waits_after_first:
            await self._released.wait()

    def _arrive(self) -> None:
        self._waiting += 1
        if self._waiting == len(self._conversations):
            self._everybody_waits.set()

    def _turn_over(self) -> None:
        self.turns += 1

    async def _together(self, works: Iterable[Callable[[], Awaitable[None]]]) -> None:
        """Run the coroutines, with limited concurrency."""
        remaining = iter(works)

        async def worker() -> None:
            for work in remaining:
                await work()

        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._plan.cleaners):
                tasks.create_task(worker())
