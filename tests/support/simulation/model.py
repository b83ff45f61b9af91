"""A model that talks, calls tools and fails as chance will have it."""

import json
import random  # noqa: TID251 (only the type; chance is an argument)
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import count
from typing import Protocol

from chatd.content.domain.messages import ErrorKind, Role
from chatd.content.domain.parts import Part, ToolCall, ToolResult
from chatd.content.domain.tools import ASK_USER_QUESTION, PROPOSE_PLAN, Executor, ToolSpec
from chatd.models.domain.language_model import (
    Finished,
    ModelError,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCallRequested,
)
from parley.clock import Clock
from support.chatd.chats.chat_machine import text_of
from support.simulation.climate import Climate

CLIENT_TOOLS = (ToolSpec("ask_user", "ask_user", "{}", Executor.CLIENT),)
GUARDED = "guarded"  # A rule asks before each call of it.
ASKING = "asking"  # It asks people while it runs.
WAITING = "waiting"  # It waits until other chats rest.
#: What calls that ask people say; other calls say nothing.
ARGUMENTS = {
    ASK_USER_QUESTION: json.dumps(
        {"questions": [{"question": "Which?", "options": [{"label": "a"}, {"label": "b"}]}]}
    ),
    PROPOSE_PLAN: json.dumps({"plan": "# first this"}),
}
STEPS_MAX = 3
PAUSE_MAX_S = 1.5
LONG_ANSWER_WORDS = 30


class Speaks(Protocol):
    """A message, stored or in a prompt."""

    @property
    def role(self) -> Role:
        """Who speaks."""
        ...

    @property
    def content(self) -> tuple[Part, ...]:
        """What is said."""
        ...


def basis_of(messages: Sequence[Speaks]) -> str:
    """Return what an answer to these messages begins with: what it is based on."""
    results = 0
    for message in reversed(messages):
        if message.role is Role.USER:
            return f"[{text_of(message.content)} and {results} results] "
        results += sum(isinstance(part, ToolResult) for part in message.content)
    return ""


class Mood:
    """How reliable the model is; `is_moody` is off once the faults are over."""

    def __init__(self, rng: random.Random, climate: Climate) -> None:
        self.is_moody = True
        self.climate = climate
        self._rng = rng
        self._numbers = count(1)

    def play(self, clock: Clock, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Answer a request with the clock of the process that asks."""
        return self._answer(clock, request)

    async def _answer(self, clock: Clock, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        rng = self._rng
        if self.is_moody and rng.random() < 0.08:
            await clock.sleep(rng.uniform(0, 30))
        is_long = self.is_moody and rng.random() < self.climate.long_answers
        if request.may_call_tools:
            yield TextDelta(basis_of(request.messages))
        for place in range(LONG_ANSWER_WORDS if is_long else rng.randrange(1, 4)):
            if is_long or rng.random() < 0.6:
                await clock.sleep(rng.uniform(0, PAUSE_MAX_S))
            is_broken = not is_long and rng.random() < self.climate.broken_answers
            if self.is_moody and is_broken:
                raise ModelError(ErrorKind.OVERLOADED, "Busy.", is_retryable=rng.random() < 0.8)
            yield TextDelta(f"word {place} ")
        if request.may_call_tools and self._wants_tools(request):
            for call in self._calls(request.tools):
                yield ToolCallRequested(call)
        yield Finished()

    def _wants_tools(self, request: ModelRequest) -> bool:
        steps = 0
        for message in reversed(request.messages):
            if message.role is Role.USER:
                break
            steps += any(isinstance(part, ToolResult) for part in message.content)
        return steps < STEPS_MAX and self._rng.random() < 0.6

    def _calls(self, tools: tuple[ToolSpec, ...]) -> Iterator[ToolCall]:
        names = [spec.name for spec in tools] + ["no_such_tool"]
        weights = [self._weight(spec) for spec in tools] + [1]
        chosen = self._rng.choices(names, weights, k=self._rng.randrange(1, 4))
        alone = {spec.name for spec in tools if spec.is_exclusive}
        for name in [name for name in chosen if name in alone][:1] or chosen:
            yield ToolCall(f"call_{next(self._numbers)}", name, ARGUMENTS.get(name, "{}"))

    def _weight(self, spec: ToolSpec) -> int:
        if spec.name == WAITING:
            return self.climate.waits
        if spec.executor is Executor.CLIENT:
            return self.climate.asking
        asks_people = spec.executor is Executor.PERSON or spec.name in (GUARDED, ASKING)
        return self.climate.people if asks_people else 4
