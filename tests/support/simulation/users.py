"""Users of a simulation: they do what users do, repeat what was not answered, and keep count."""

import asyncio
import json
import random  # noqa: TID251 (only the type; chance is an argument)
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count

from chatd.chats.domain.chat import NewMessage, PendingCall, RevertKind, Status
from chatd.chats.domain.commands import (
    AnswerAction,
    Approved,
    BusyBehavior,
    ChangeQueuedMessage,
    Command,
    DeleteQueuedMessage,
    EditMessage,
    Interrupt,
    PromoteQueuedMessage,
    RequestCompaction,
    Resolved,
    RevertChat,
    SendMessage,
    SetArchived,
    SubmitToolResults,
    Supplied,
    UndoRevert,
)
from chatd.content.domain.messages import ChatMode, MessageOrigin, Role
from chatd.content.domain.parts import Text, ToolOutcome, ToolResult
from chatd.content.domain.tools import (
    SUSPENDED,
    Dispatch,
    Executor,
    InputAction,
    PendingKind,
)
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import (
    ChatId,
    ExecutionId,
    MessageId,
    Owner,
    QueuedMessageId,
    RevertId,
    WorkerId,
)
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable
from support.chatd.chats.in_memory_chats import StoredChat
from support.simulation.climate import Climate
from support.simulation.cluster import Cluster
from support.simulation.database import SimulatedDatabase
from support.simulation.executor import SimulatedExecutor
from support.simulation.node import Gone

ATTEMPTS_MAX = 12
ACCEPTED = 0.6
WITH_FILES = 0.7
DROPS_QUEUE = 0.3
ARCHIVED_S_MAX = 2.0
AT_REST = (Status.WAITING, Status.ERROR)
NOT_THERE = QueuedMessageId("00000000-0000-0000-0000-000000000000")

CommandFor = Callable[[WorkerId | None], Command]


@dataclass(slots=True)
class Request:
    """One wish of a user and what became of it, as the user knows."""

    chat_id: ChatId
    key: str
    text: str  # Empty unless it brings a message.
    origin: MessageOrigin = MessageOrigin.PERSON
    answered: ExecutionId | None = None  # The action that it answers.
    answer_json: str = ""
    person: str = ""
    is_acknowledged: bool = False
    is_refused: bool = False
    is_phantom: bool = False  # Passed for done although nothing was stored.
    was_unanswered: bool = False


class User:
    """Somebody with one chat."""

    def __init__(
        self,
        database: SimulatedDatabase,
        chat_id: ChatId,
        owner: Owner,
        cluster: Cluster,
        clock: Clock,
        rng: random.Random,
        numbers: "count[int]",
        climate: Climate,
        executor: SimulatedExecutor,
        person: str,
    ) -> None:
        self._person = person
        self._climate = climate
        self._executor = executor
        self._database = database
        self.chat_id = chat_id
        self._owner = owner
        self._cluster = cluster
        self._clock = clock
        self._rng = rng
        self._numbers = numbers
        self.requests: list[Request] = []

    @property
    def _chat(self) -> StoredChat:
        """What is stored; users see the newest, whatever they may do with it."""
        return self._database.chat(self.chat_id)

    async def act(self, times: int, pause_mean_s: float) -> None:
        """Do that many things, with pauses."""
        provoked = asyncio.Event()
        self._cluster.waiting.setdefault(self.chat_id, []).append(provoked)
        for _ in range(times):
            provoked.clear()
            await self._pause(self._rng.expovariate(1 / pause_mean_s), provoked)
            await self._do_something()

    async def _pause(self, seconds: float, provoked: asyncio.Event) -> None:
        """Wait, unless something happens to the chat that calls for a reaction."""
        asyncio.get_running_loop().call_later(seconds, provoked.set)
        await provoked.wait()

    async def _do_something(self) -> None:
        is_queue = bool(self._chat.queue)
        usual = (
            (self._urgent, 3),
            (self._edit, 2),
            (self._interrupt, 3),
            (self._drop, 4 if is_queue else 1),
            (self._promote, 4 if is_queue else 1),
            (self._answer, 6 if self._chat.state.status is Status.REQUIRES_ACTION else 0),
            (self._compact, 1),
            (self._archive, 1),
        )
        liked = zip(usual, self._climate.wishes, strict=True)
        weights = [weight * liking for (_, weight), liking in liked]
        deciding = 3 * self._climate.people if self._asked() else 0
        wishes = [self._send, *(wish for wish, _ in usual), self._decide, self._revert, self._undo]
        is_resting = self._chat.state.status in AT_REST
        reverting = self._climate.reverts if is_resting else self._climate.reverts // 4
        undoing = self._climate.reverts if self._chat.reverts else 0
        (wish,) = self._rng.choices(wishes, [8, *weights, deciding, reverting, undoing])
        await wish()

    def _new_request(self, is_message: bool) -> Request:
        number = next(self._numbers)
        text = f"message {number}" if is_message else ""
        origin = MessageOrigin.GOAL if number % 5 == 0 else MessageOrigin.PERSON
        request = Request(self.chat_id, f"request-{number}", text, origin)
        self.requests.append(request)
        return request

    async def _send(self, busy: BusyBehavior = BusyBehavior.QUEUE) -> None:
        request = self._new_request(is_message=True)
        message, queued_id = self._message(request), self._queued_id(request)
        await self._request(
            request, lambda claimed_by: SendMessage(message, queued_id, claimed_by, busy)
        )

    async def _urgent(self) -> None:
        await self._send(BusyBehavior.INTERRUPT)

    async def _edit(self) -> None:
        said = [message.id for message in self._chat.live() if message.role is Role.USER]
        if said:
            target = self._rng.choice(said)
            request = self._new_request(is_message=True)
            message = self._message(request)
            revert_id = self._revert_id(request) if self._may(WITH_FILES) else None
            await self._request(
                request, lambda claimed_by: EditMessage(target, message, claimed_by, revert_id)
            )

    async def _revert(self) -> None:
        """Go back to before a message, mostly with the files."""
        said = [message.id for message in self._chat.live() if message.role is Role.USER]
        if said:
            target, restores_files = self._rng.choice(said), self._may(WITH_FILES)
            request = self._new_request(is_message=False)
            revert_id = self._revert_id(request)
            await self._request(
                request,
                lambda claimed_by: RevertChat(revert_id, target, restores_files, claimed_by),
            )

    async def _undo(self) -> None:
        """Return to where the chat was before its newest revert."""
        done = self._chat.reverts
        undoable = [key for key, each in done.items() if each.revert.kind is RevertKind.HISTORY]
        undone_id = (undoable or list(done))[-1]
        request = self._new_request(is_message=False)
        revert_id = self._revert_id(request)
        await self._request(
            request, lambda claimed_by: UndoRevert(revert_id, undone_id, claimed_by)
        )

    def _may(self, likely: float) -> bool:
        """Return whether something happens that happens only in runs with reverts."""
        return bool(self._climate.reverts) and self._rng.random() < likely

    def _revert_id(self, request: Request) -> RevertId:
        return RevertId(str(uuid.uuid5(uuid.UUID(self.chat_id), f"revert {request.key}")))

    async def _interrupt(self) -> None:
        state = self._chat.state
        turn_id = self._rng.choice((MessageId(0), state.turn_id))
        may_claim = state.status is Status.REQUIRES_ACTION
        drops_queue = self._may(DROPS_QUEUE)
        await self._request(
            self._new_request(is_message=False),
            lambda claimed_by: Interrupt(turn_id, claimed_by, drops_queue),
            may_claim=may_claim,
        )

    async def _drop(self) -> None:
        """Delete a message that waits, or move it: every third request about one does."""
        queued_id, place = self._some_queued(), 1 + len(self.requests) % 4
        is_moved = len(self.requests) % 3 == 0
        await self._request(
            self._new_request(is_message=False),
            lambda claimed_by: (
                ChangeQueuedMessage(queued_id, place=place)
                if is_moved
                else DeleteQueuedMessage(queued_id)
            ),
            may_claim=False,
        )

    async def _promote(self) -> None:
        queued_id = self._some_queued()
        await self._request(
            self._new_request(is_message=False),
            lambda claimed_by: PromoteQueuedMessage(queued_id, claimed_by),
        )

    async def _answer(self) -> None:
        results = tuple(
            ToolResult(call.tool_call_id, call.tool_name, "{}", ToolOutcome.DONE)
            for call in self._chat.state.pending
            if call.is_asked and call.kind is PendingKind.CLIENT
        )
        await self._request(
            self._new_request(is_message=False),
            lambda claimed_by: SubmitToolResults(results, self._owner.id, claimed_by),
        )

    def _asked(self) -> list[PendingCall]:
        """Return what people are asked in the chat."""
        pending = self._chat.state.pending
        not_people = (PendingKind.CLIENT, PendingKind.AGENTS)
        return [call for call in pending if call.is_asked and call.kind not in not_people]

    async def _decide(self) -> None:
        """Answer a question, a plan or a request for permission, whichever way."""
        pending = self._rng.choice(self._asked())
        action_id = pending.action_id
        assert action_id is not None
        is_accepted = self._rng.random() < ACCEPTED
        answer = self._answer_to(action_id, pending.kind, is_accepted=is_accepted)
        request = self._new_request(is_message=False)
        said = json.dumps({"accepted": is_accepted, "request": request.key})
        request.answered, request.answer_json, request.person = action_id, said, self._person
        await self._request(
            request,
            lambda claimed_by: AnswerAction(action_id, answer, said, self._person, claimed_by),
        )

    def _answer_to(
        self, action_id: ExecutionId, kind: PendingKind, *, is_accepted: bool
    ) -> Approved | Resolved | Supplied:
        """Return what the service would make of an answer."""
        if kind in SUSPENDED:
            return Supplied(InputAction.ACCEPT if is_accepted else InputAction.DECLINE)
        asked = self._chat.actions[action_id].asked
        call = asked.call
        if is_accepted and kind in (PendingKind.APPROVAL, PendingKind.LOOP):
            message_id = next(m.id for m in self._chat.messages if call in m.content)
            journal = self._executor.generation
            dispatch = Dispatch(action_id, call, Executor.TOOLRUNNER, journal, asked.mode)
            return Approved(message_id, dispatch)
        is_plan = is_accepted and kind is PendingKind.PLAN
        result = ToolResult(call.tool_call_id, call.tool_name, "{}", ToolOutcome.DONE)
        return Resolved(result, ChatMode.ORDINARY if is_plan else None)

    async def _compact(self) -> None:
        await self._request(self._new_request(is_message=False), RequestCompaction)

    async def _archive(self) -> None:
        """Put the chat away for a moment."""
        for command in (SetArchived(True), SetArchived(False)):
            if command.archived is False and self._climate.rushes:
                await self._clock.sleep(self._rng.uniform(0, ARCHIVED_S_MAX))
            await self._request(
                self._new_request(is_message=False), self._always(command), may_claim=False
            )

    def _always(self, command: Command) -> CommandFor:
        return lambda claimed_by: command

    async def _request(
        self, request: Request, command_for: CommandFor, *, may_claim: bool = True
    ) -> None:
        """Ask until somebody answers; every repetition may go to another process."""
        for _ in range(ATTEMPTS_MAX):
            node = self._cluster.serving()
            if node is None:
                await self._clock.sleep(1.0)
                continue
            try:
                is_stored = await node.ask(
                    partial(
                        node.execute,
                        self.chat_id,
                        self._owner,
                        request.key,
                        command_for,
                        may_claim=may_claim,
                    )
                )
            except (Gone, DatabaseUnavailable):
                request.was_unanswered = True
                await self._clock.sleep(self._rng.uniform(0.1, 4.0))
            except ChatError:
                request.is_refused = True
                return
            else:
                request.is_acknowledged = True
                request.is_phantom = bool(request.text) and not is_stored
                return

    def _message(self, request: Request) -> NewMessage:
        said = (Text(request.text),)
        return NewMessage(Role.USER, said, self._owner.id, origin=request.origin)

    def _queued_id(self, request: Request) -> QueuedMessageId:
        return QueuedMessageId(str(uuid.uuid5(uuid.UUID(self.chat_id), request.key)))

    def _some_queued(self) -> QueuedMessageId:
        queue = self._chat.queue
        return self._rng.choice(queue).id if queue else NOT_THERE
