"""Starts, checks, cancels and applies races.

All ids are derived from the request that starts a race, so a start that was interrupted is
continued by the same request, and nothing is started twice.
"""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from chatd.chats.domain.chat import ChatState, NewMessage
from chatd.chats.domain.commands import Command, Interrupt
from chatd.chats.store.creation import NewChat
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text, ToolCall, ToolOutcome
from chatd.content.domain.tools import (
    Dispatch,
    Execution,
    ExecutorUnreachable,
    Outcome,
    Tools,
    ToolSpec,
)
from chatd.content.domain.truncation import truncated
from chatd.content.domain.turn_context import TurnContext
from chatd.models.domain.profile import ModelChoice
from chatd.primitives.domain.errors import CheckUnavailable, InvalidRequest
from chatd.primitives.domain.ids import ChatId, ExecutionId, MessageId, Owner, OwnerId
from chatd.primitives.domain.requests import ClientKey
from chatd.races.domain.race import OUTPUT_BYTES_MAX, Candidate, CheckResult, NewRace, Race
from chatd.workspaces.domain.merges import MergeReport, MergeRequest
from parley.tasks import Shielding

CHECK_S: Final = 100
CHECK_TOOL: Final = "execute"
UNENDED: Final = f"The check did not end within {CHECK_S} seconds."


class RaceStore(Protocol):
    """Stores races."""

    async def add(self, new: NewRace, key: ClientKey) -> ChatState | None:
        """Create the chat of a race and name its candidates; None if it exists already."""
        ...

    async def start(self, chats: Sequence[NewChat]) -> tuple[ChatState, ...]:
        """Create the chats of candidates, together; return the states of those that are new."""
        ...

    async def get(self, race_id: ChatId, owner_id: OwnerId) -> Race:
        """Return a race of a user with its candidates.

        Raises:
            ChatNotFound: The user has no such race.
        """
        ...

    async def set_check(self, race_id: ChatId, chat_id: ChatId, result: CheckResult) -> None:
        """Store the result of a check."""
        ...

    async def set_cancelled(self, race_id: ChatId) -> None:
        """Store that a race was cancelled."""
        ...

    async def set_applied(self, race_id: ChatId, chat_id: ChatId) -> None:
        """Store the candidate whose changes were applied."""
        ...


class Forks(Protocol):
    """Forks of workspaces."""

    async def fork(self, chat_id: ChatId, agent_id: ChatId, owner: Owner) -> None:
        """Copy the workspace of a chat for another; a repeated request finds the copy.

        Raises:
            ChatError: no copy could be made.
        """
        ...

    async def discard(self, agent_id: ChatId) -> None:
        """Remove the fork of a candidate that was not started, if there is one."""
        ...

    async def has_files(self, agent_id: ChatId, owner_id: OwnerId) -> bool:
        """Return whether a fork has its files.

        Raises:
            ChatError: there is no such fork.
        """
        ...

    async def merge(
        self, agent_id: ChatId, owner_id: OwnerId, request: MergeRequest
    ) -> MergeReport:
        """Merge a fork into the workspace that it was copied from.

        Raises:
            ChatError: there is no such fork, or its files are not there.
            Refusal: the node refuses or does not respond.
        """
        ...


@dataclass(frozen=True, slots=True)
class RacePorts:
    """The dependencies of races.

    Attributes:
        store: Stores races.
        forks: The forks of candidates.
        tools: The tools of all executors.
        complete: Completes a new chat from the configuration.
        apply: Executes a command on a chat.
        started: Called with the state of each new chat.
        grown: Called with the root of a tree that got chats.
        tasks: Owns work that must not be cancelled with its request.
    """

    store: RaceStore
    forks: Forks
    tools: Tools
    complete: Callable[[NewChat], Awaitable[NewChat]]
    apply: Callable[[ChatId, Command], Awaitable[object]]
    started: Callable[[ChatState], None]
    grown: Callable[[ChatId], None]
    tasks: Shielding


class Races:
    """Runs races."""

    def __init__(self, ports: RacePorts) -> None:
        self._ports = ports

    async def start(self, new: NewRace, key: ClientKey) -> None:
        """Start a race, or the candidates of one whose start was interrupted.

        Raises:
            ChatError: a workspace cannot be copied.
        """
        await self._ports.store.add(new, key)
        race = await self._ports.store.get(new.id, new.owner.id)
        waiting = [each for each in race.candidates if not each.owner_epoch]
        if race.cancelled_at is not None or not waiting:
            return
        for each in waiting:
            await self._ports.forks.fork(race.id, each.chat_id, new.owner)
        chats = [await self._ports.complete(_chat_of(new, each)) for each in waiting]
        await self._ports.tasks.complete(self._begin(new, chats))

    async def _begin(self, new: NewRace, chats: Sequence[NewChat]) -> None:
        states = await self._ports.store.start(chats)
        self._ports.grown(new.id)
        for state in states:
            self._ports.started(state)
        race = await self._ports.store.get(new.id, new.owner.id)
        if race.cancelled_at is not None:
            await self._discard_unstarted(race)

    async def _discard_unstarted(self, race: Race) -> None:
        for each in race.candidates:
            if not each.owner_epoch:
                await self._ports.forks.discard(each.chat_id)

    async def check(self, race_id: ChatId, owner: Owner) -> Race:
        """Check the candidates that have ended, and return the race.

        Raises:
            ChatNotFound: The user has no such race.
            CheckUnavailable: The workspace of a candidate cannot be used now.
        """
        race = await self._ports.store.get(race_id, owner.id)
        async with asyncio.TaskGroup() as group:
            checks = [
                group.create_task(self._check(race, each, owner)) for each in race.unchecked()
            ]
        # The others are stored; the first failure says why this one is not.
        for failure in filter(None, (check.result() for check in checks)):
            raise failure
        return await self._ports.store.get(race_id, owner.id)

    async def _check(
        self, race: Race, candidate: Candidate, owner: Owner
    ) -> CheckUnavailable | None:
        try:
            result = await self._checked(race, candidate, owner)
        except CheckUnavailable as unavailable:
            return unavailable
        await self._ports.store.set_check(race.id, candidate.chat_id, result)
        return None

    async def _checked(self, race: Race, candidate: Candidate, owner: Owner) -> CheckResult:
        context = TurnContext(
            candidate.chat_id, owner, ancestor_ids=(race.id,), workspace_id=candidate.chat_id
        )
        if not await self._ports.forks.has_files(candidate.chat_id, owner.id):
            raise CheckUnavailable("workspace")  # A new copy would have none of its work.
        offered = await self._ports.tools.list_tools(context)
        spec = next((spec for spec in offered if spec.name == CHECK_TOOL), None)
        if spec is None:
            raise CheckUnavailable("workspace")
        execution = _execution(race, candidate, context, spec)
        try:
            outcome = await self._ports.tools.execute(execution)
        except ExecutorUnreachable:
            raise CheckUnavailable("workspace") from None
        assert isinstance(outcome, Outcome)  # Commands ask nothing.
        told = json.loads(outcome.result_json)
        exit_code, output = told.get("exit_code"), told.get("output") or told.get("error") or ""
        if (
            exit_code is None
            and not told.get("running")
            and outcome.outcome is not ToolOutcome.DONE
        ):
            raise CheckUnavailable("workspace")  # It did not run, and may run later.
        if told.get("running"):
            await self._ports.tools.cancel(execution)
            exit_code, output = None, f"{UNENDED}\n{output}"
        return CheckResult(exit_code, truncated(output, OUTPUT_BYTES_MAX), candidate.version)

    async def cancel(self, race_id: ChatId, owner: Owner) -> Race:
        """Stop all candidates of a race; those that were not started lose their forks.

        Raises:
            ChatNotFound: The user has no such race.
        """
        race = await self._ports.store.get(race_id, owner.id)
        await self._ports.store.set_cancelled(race.id)
        for each in race.candidates:
            if each.owner_epoch and not each.is_ended:
                await self._ports.apply(each.chat_id, Interrupt(MessageId(0), None))
        race = await self._ports.store.get(race_id, owner.id)
        await self._discard_unstarted(race)
        return race

    async def apply(
        self, race_id: ChatId, owner: Owner, position: int, request: MergeRequest
    ) -> tuple[Race, MergeReport]:
        """Apply the changes of a candidate to the workspace of its race.

        Raises:
            ChatNotFound: The user has no such race.
            InvalidRequest: There is no such candidate, or it still works.
            ChatError: Its files are not there.
            Refusal: The node refuses or does not respond.
        """
        race = await self._ports.store.get(race_id, owner.id)
        candidate = next((each for each in race.candidates if each.position == position), None)
        if candidate is None:
            raise InvalidRequest("position", f"is more than {len(race.candidates)}")
        if not candidate.is_ended:
            problem = "names a candidate that has not ended; wait for it, or cancel the race"
            raise InvalidRequest("position", problem)
        report = await self._ports.forks.merge(candidate.chat_id, owner.id, request)
        if report.is_applied:
            await self._ports.store.set_applied(race.id, candidate.chat_id)
        return await self._ports.store.get(race_id, owner.id), report


def candidates_of(race_id: ChatId, models: Sequence[tuple[str, str]]) -> tuple[Candidate, ...]:
    """Return the candidates of a new race, from the names and ids of their models."""
    return tuple(
        Candidate(position, _derived(race_id, f"candidate-{position}"), model, model_id)
        for position, (model, model_id) in enumerate(models, start=1)
    )


def _derived(chat_id: ChatId, name: str) -> ChatId:
    return ChatId(str(uuid.uuid5(uuid.UUID(chat_id), name)))


def _chat_of(new: NewRace, candidate: Candidate) -> NewChat:
    message = NewMessage(
        Role.USER,
        (Text(new.prompt), *new.added),
        created_by=new.owner.id,
        choice=ModelChoice(candidate.model_id),
        origin=new.origin,
    )
    return NewChat(
        candidate.chat_id,
        new.owner,
        candidate.model,
        has_own_title=True,
        messages=(message,),
        model_id=candidate.model_id,
        workspace_id=candidate.chat_id,
        mcp_server_ids=None,
        owner_group_ids=new.owner_group_ids,
        is_unattended=True,
        parent_chat_id=new.id,
        root_chat_id=new.id,
    )


def _execution(race: Race, candidate: Candidate, context: TurnContext, spec: ToolSpec) -> Execution:
    """Return the call of a check; that of the same work has the same id."""
    arguments = {"command": race.check_command, "timeout": f"{CHECK_S}s"}
    execution_id = ExecutionId(_derived(candidate.chat_id, f"check-{candidate.version}"))
    call = ToolCall("check", spec.name, json.dumps(arguments))
    dispatch = Dispatch(execution_id, call, spec.executor, spec.journal_generation)
    return Execution(context, candidate.owner_epoch, dispatch, spec)
