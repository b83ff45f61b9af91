"""One chat from its creation to its last turn: its requests, the expected events, and the timing.

The next turn begins when the stream has delivered all of a version in which the chat waits and the
last message answers as many messages as were sent, by whatever events: of a turn that is over
before its status could be sent, only the messages are delivered.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec

from parley.clock import Clock
from parley.testing.scaletest.checker import ASSISTANT, RUNNING, WAITING, Checker
from parley.testing.scaletest.connections import Dialer, Requests
from parley.testing.scaletest.events import Message, Problem, decode, decode_page
from parley.testing.scaletest.follower import (
    PASSING,
    DisconnectSchedule,
    Follower,
    StreamLost,
    pause_s,
)
from parley.testing.scaletest.frames import Frame
from parley.testing.scaletest.outcome import ChatOutcome, Stage, TurnTimes
from parley.testing.scaletest.plan import Plan

FAILED = frozenset({"error", "requires_action"})
LABEL = "scaletest"
PAGE = 200


@dataclass(frozen=True, slots=True)
class ConversationResources:
    """The resources that conversations share.

    Attributes:
        plan: The plan.
        requests: Sends requests.
        dialer: Opens connections.
        tasks: Owns the streams.
        clock: The clock.
        first_turn_over: Waits until turn 2 may begin.
        turn_over: Is called at each turn's end.
    """

    plan: Plan
    requests: Requests
    dialer: Dialer
    tasks: asyncio.TaskGroup
    clock: Clock
    first_turn_over: Callable[[], Awaitable[None]]
    turn_over: Callable[[], None]


class Failed(Exception):
    """The chat cannot continue."""

    def __init__(self, stage: Stage, problem: str) -> None:
        super().__init__(problem)
        self.stage = stage


class Conversation:
    """One chat."""

    def __init__(
        self, number: int, means: ConversationResources, cutting: DisconnectSchedule
    ) -> None:
        self.outcome = ChatOutcome(number)
        self._plan = means.plan
        self._means = means
        self._cutting = cutting
        self._checker = Checker()
        self._follower: Follower | None = None
        self._following: asyncio.Task[None] | None = None
        self._moved = asyncio.Event()
        self._lost: StreamLost | None = None
        self._error = Problem()

    async def run(self, delay_s: float) -> None:
        """Run the whole conversation; its result is in the outcome."""
        await self._means.clock.sleep(delay_s)
        try:
            for turn in range(1, self._plan.turns + 1):
                async with asyncio.timeout(self._plan.turn_timeout_s):
                    await self._turn(turn)
                self._means.turn_over()
                if turn == 1:
                    await self._means.first_turn_over()
        except Failed as failed:
            self.outcome.fail(failed.stage, str(failed))
        except TimeoutError:
            limit_s = self._plan.turn_timeout_s
            self.outcome.fail(Stage.TIMEOUT, f"the turn was not over after {limit_s:g} s")

    def stop(self, problem: str) -> None:
        """Stop the conversation if it is not over."""
        if self.outcome.turns_completed < self._plan.turns:
            self.outcome.fail(Stage.TIMEOUT, problem)

    async def end(self) -> None:
        """Close the stream, and compare its messages with those of the chat."""
        outcome, checker = self.outcome, self._checker
        if self._following is not None:
            self._following.cancel()
        outcome.final_status = checker.status
        if outcome.chat_id and outcome.turns_completed == self._plan.turns:
            try:
                async with asyncio.timeout(self._plan.turn_timeout_s):
                    checker.compare(await self._stored())
            except Failed as failed:
                outcome.fail(failed.stage, str(failed))
            except TimeoutError:
                outcome.fail(Stage.VERIFICATION, "the messages could not be read in time")
        if outcome.failure is Stage.STATUS_ERROR:
            said = ": ".join(filter(None, (self._error.message, self._error.detail)))
            outcome.problem = said or outcome.problem
        if checker.counts.faults:
            outcome.fail(Stage.VERIFICATION, checker.findings[0])
        outcome.counts, outcome.findings = checker.counts, checker.findings
        if self._follower is not None:
            outcome.cuts, outcome.breaks = self._follower.cuts, self._follower.breaks
            outcome.refused = self._follower.refused
            outcome.stream_bytes = self._follower.received_bytes

    async def delete(self) -> None:
        """Delete the chat."""
        if not self.outcome.chat_id:
            return
        request = self._plan.target.request("DELETE", f"/chats/{self.outcome.chat_id}")
        head, _ = await self._means.requests.ask(request)
        self.outcome.is_left = head.status not in (204, 404)

    async def _turn(self, turn: int) -> None:
        clock, plan, outcome = self._means.clock, self._plan, self.outcome
        times = TurnTimes(clock.monotonic())
        outcome.turns.append(times)
        self._moved.clear()
        body: dict[str, object] = {"content": [{"type": "text", "text": plan.prompt}]}
        if plan.model_id:
            body["model_id"] = plan.model_id
        if turn == 1:
            body["labels"] = {LABEL: plan.run}
            created = await self._post("/chats", body, turn, Stage.CREATE_CHAT)
            outcome.chat_id = msgspec.json.decode(created)["id"]
        else:
            path = f"/chats/{outcome.chat_id}/messages"
            await self._post(path, body, turn, Stage.CREATE_MESSAGE)
        times.answered_s = clock.monotonic() - times.began_at
        if turn == 1:
            self._follow()
        while not self._is_over(turn):
            await self._moved.wait()
            self._moved.clear()

    def _follow(self) -> None:
        means = self._means
        self._follower = Follower(
            self._plan.target,
            means.dialer,
            self.outcome.chat_id,
            take=self._take,
            lost=self._on_lost,
            cutting=self._cutting,
            clock=means.clock,
        )
        self._following = means.tasks.create_task(self._follower.run())

    def _is_over(self, turn: int) -> bool:
        checker = self._checker
        if self._lost is not None:
            stage = Stage.STREAM_ENDED_EARLY if self._lost.was_open else Stage.STREAM_OPEN
            raise Failed(stage, self._lost.problem)
        if checker.status in FAILED:
            raise Failed(Stage.STATUS_ERROR, f"the chat is in status {checker.status}")
        return self._is_answered(turn)

    def _is_answered(self, turn: int) -> bool:
        checker = self._checker
        is_waiting = checker.is_settled and checker.status == WAITING
        return is_waiting and checker.is_answered and checker.users == turn

    def _take(self, frame: Frame) -> None:
        now = self._means.clock.monotonic()
        if frame.kind == "resync":
            self._checker.begin_anew()
            return
        document = decode(frame.data)
        self._checker.take(frame.kind, frame.cursor, document)
        times = self.outcome.turns[-1]
        since_s = now - times.began_at
        match frame.kind:
            case "message_part" if times.output_s is None:
                part = document.message_part
                if part is not None and part.role == ASSISTANT:
                    times.output_s = since_s
            case "message" if times.output_s is None:
                message = document.message
                if message is not None and message.role == ASSISTANT:
                    times.output_s = since_s
            case "status" if document.status is not None:
                if document.status.status == RUNNING and times.running_s is None:
                    times.running_s = since_s
                self._moved.set()
            case "error" if document.error is not None:
                self._error = document.error
        if times.over_s is None and self._is_answered(len(self.outcome.turns)):
            times.over_s = since_s
            self._moved.set()

    def _on_lost(self, lost: StreamLost) -> None:
        self._lost = lost
        self._moved.set()

    async def _post(self, path: str, body: object, turn: int, stage: Stage) -> bytes:
        """Send a request, retrying while the server does not answer, and return the answer."""
        plan = self._plan
        key = f'Idempotency-Key: "{plan.run}-{self.outcome.number}-{turn}"'
        request = plan.target.request("POST", path, msgspec.json.encode(body), (key,))
        while True:
            head, answer = await self._means.requests.ask(request)
            if head.status in (200, 201, 202):
                return answer
            if head.status not in PASSING:
                raise Failed(stage, _said(head.status, answer))
            self.outcome.resent += 1
            await self._means.clock.sleep(pause_s(head))

    async def _stored(self) -> list[Message]:
        stored: list[Message] = []
        bound = ""
        while True:
            path = f"/chats/{self.outcome.chat_id}/messages?limit={PAGE}{bound}"
            head, answer = await self._means.requests.ask(self._plan.target.request("GET", path))
            if head.status in PASSING:
                await self._means.clock.sleep(pause_s(head))
                continue
            if head.status != 200:
                raise Failed(Stage.VERIFICATION, _said(head.status, answer))
            page = decode_page(answer)
            stored += page.messages
            if not page.has_more or not page.messages:
                return stored
            bound = f"&before_id={stored[-1].id}"


def _said(status: int, answer: bytes) -> str:
    try:
        problem = msgspec.json.decode(answer, type=dict[str, object])
    except msgspec.DecodeError:
        problem = {}
    words = [str(problem[name]) for name in ("title", "detail") if problem.get(name)]
    return f"answered with {status} {': '.join(words)}".rstrip()
