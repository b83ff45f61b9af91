"""Restores files of chats at the nodes of their workspaces."""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

import grpc

from chatd.chats.domain.chat import Revert, RevertKind
from chatd.chats.domain.errors import FenceLost
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import (
    ChatId,
    MessageId,
    Owner,
    OwnerClaim,
)
from chatd.turns.domain.ports import RestoreFailed
from chatd.users.clients.existence import user_of
from chatd.workspaces.clients.failures import AMBIGUOUS, MOVED, plain_problem
from chatd.workspaces.domain.errors import WorkspaceNotReady
from chatd.workspaces.domain.ports import WorkspaceLocation, WorkspaceLocator
from chatd.workspaces.domain.workspace import State
from parley.api.workspace.v1 import (
    checkpoint_pb2,
    checkpoint_service_pb2,
    sandbox_pb2,
    workspace_pb2,
)
from parley.api.workspace.v1.checkpoint_service_pb2_grpc import CheckpointServiceStub
from parley.clock import Clock
from parley.rpc import Address, Channels, acting_for
from parley.tasks import Overtaken, run_unless

R = TypeVar("R")

#: A restore writes every file with a sync; repeated, it goes on.
RESTORE_S: Final = 300.0
PREVIEW_S: Final = 60.0
#: How long a node may be unavailable before the revert fails.
RETURN_S: Final = 60.0
#: How long a preview waits for a workspace or its node; its caller does not wait much longer.
PATIENCE_S: Final = 15.0
AGAIN_S: Final = 0.25
AGAIN_S_MAX: Final = 4.0
REPORTED_PATHS_MAX: Final = 200
AGENTS_MAX: Final = 1000
STALE_OWNER: Final = "STALE_OWNER"

Ask = Callable[[CheckpointServiceStub, workspace_pb2.WorkspaceContext], Awaitable[R]]


class StartedAgents(Protocol):
    """The agents that chats started."""

    async def started_since(self, chat_id: ChatId, message_id: MessageId) -> tuple[ChatId, ...]:
        """Return the agents that a chat started from a message on, with all chats below them."""
        ...


class NodeRestores:
    """Sends restores to the nodes of chats; what their agents changed is taken back with them."""

    def __init__(
        self, channels: Channels, clock: Clock, locator: WorkspaceLocator, agents: StartedAgents
    ) -> None:
        self._agents = agents
        self._channels = channels
        self._clock = clock
        self._locator = locator

    async def restore(self, claim: OwnerClaim, owner: Owner, revert: Revert) -> bytes:
        """Restore files by the id of a revert, or go on with it; return the encoded report.

        Raises:
            RestoreFailed: They cannot be restored now.
            FenceLost: The claim is over: another process owns the chat.
        """

        async def ask(
            stub: CheckpointServiceStub, context: workspace_pb2.WorkspaceContext
        ) -> checkpoint_pb2.RestoreReport:
            report = checkpoint_pb2.RestoreReport()
            for request in await self._requests(claim, revert):
                request.context.CopyFrom(context)
                done = await stub.RestoreFiles(request, timeout=RESTORE_S)
                _add(report, done.report)
            return report

        try:
            report = await self._asked(claim.chat_id, owner, ask)
        except (FenceLost, RestoreFailed):
            raise
        except ChatError as unready:
            raise RestoreFailed(
                f"The files could not be restored: {_reason(unready)}."
            ) from unready
        if report is None:
            return b""
        _shorten(report)
        return report.SerializeToString()

    async def _requests(
        self, claim: OwnerClaim, revert: Revert
    ) -> tuple[checkpoint_service_pb2.RestoreFilesRequest, ...]:
        """Return what is restored, one after the other; each has an id of its own.

        The undo of an edit takes back what the edited turn changed, then what the edit restored.
        """
        if revert.kind is not RevertKind.UNDO:
            return (await self._to_turn(claim, revert.revert_id, revert.message_id),)
        undo = checkpoint_service_pb2.RestoreFilesRequest(
            request_id=revert.revert_id,
            owner_epoch=claim.owner_epoch,
            undo_restore_id=revert.undone_id or "",
        )
        if not revert.replacement_id:
            return (undo,)
        request_id = f"{revert.revert_id}-turn"
        edited = await self._to_turn(claim, request_id, revert.replacement_id)
        return (edited, undo) if revert.has_restored else (edited,)

    async def _to_turn(
        self, claim: OwnerClaim, request_id: str, turn_id: MessageId
    ) -> checkpoint_service_pb2.RestoreFilesRequest:
        """Return the request to restore files to the start of a turn."""
        started = await self._agents.started_since(claim.chat_id, turn_id)
        return checkpoint_service_pb2.RestoreFilesRequest(
            request_id=request_id,
            owner_epoch=claim.owner_epoch,
            turn_id=turn_id,
            agent_chat_ids=started[:AGENTS_MAX],
        )

    async def preview(
        self, chat_id: ChatId, owner: Owner, message_id: MessageId
    ) -> checkpoint_pb2.RestoreReport:
        """Return what a restore to before a message would do.

        Raises:
            RestoreFailed: It cannot be determined now.
            ChatError: The workspace of the chat has to be started first, or cannot be used.
        """

        async def ask(
            stub: CheckpointServiceStub, context: workspace_pb2.WorkspaceContext
        ) -> checkpoint_pb2.RestoreReport:
            started = await self._agents.started_since(chat_id, message_id)
            request = checkpoint_service_pb2.PreviewRestoreRequest(
                context=context, turn_id=message_id, agent_chat_ids=started[:AGENTS_MAX]
            )
            return (await stub.PreviewRestore(request, timeout=PREVIEW_S)).report

        report = await self._asked(chat_id, owner, ask, PATIENCE_S)
        return report or checkpoint_pb2.RestoreReport()

    async def _asked(
        self, chat_id: ChatId, owner: Owner, ask: Ask[R], patience_s: float | None = None
    ) -> R | None:
        """Return a node's answer, retried while it is away; None if the chat has no files."""
        until_s = self._clock.monotonic() + (patience_s or RETURN_S)
        pause_s = AGAIN_S
        while True:
            try:
                location = await self._location(chat_id, owner, patience_s)
                return None if location is None else await self._ask(location, chat_id, owner, ask)
            except grpc.aio.AioRpcError as error:
                problem = plain_problem(error)
                if problem.reason == STALE_OWNER:
                    raise FenceLost(chat_id) from error
                is_moved = problem.reason in MOVED
                is_away = error.code() in AMBIGUOUS or problem.reason == "FILE_WORKER_GONE"
                if not (is_moved or is_away) or self._clock.monotonic() >= until_s:
                    text = f"The files could not be restored: {problem.message}."
                    raise RestoreFailed(text) from error
            self._locator.forget(chat_id)
            await self._clock.sleep(pause_s)
            pause_s = min(2 * pause_s, AGAIN_S_MAX)

    async def _location(
        self, chat_id: ChatId, owner: Owner, patience_s: float | None
    ) -> WorkspaceLocation | None:
        """Return where the files are, once their workspace is ready; None if there are none."""
        location = await self._locator.locate(chat_id)
        if not location.is_made:
            return None
        readying = self._locator.ensure_ready(chat_id, owner)
        if patience_s is None:
            return await readying
        try:
            return await run_unless(readying, self._clock.sleep(patience_s))
        except Overtaken:
            raise WorkspaceNotReady(location.workspace_id, State.PREPARING) from None

    async def _ask(
        self, location: WorkspaceLocation, chat_id: ChatId, owner: Owner, ask: Ask[R]
    ) -> R:
        context = workspace_pb2.WorkspaceContext(
            workspace_id=location.workspace_id,
            epoch=location.epoch,
            chat_id=chat_id,
            profile=sandbox_pb2.SANDBOX_PROFILE_WORKSPACE_WRITE,
        )
        channel = self._channels.also(Address.parse(location.address))
        with acting_for(user_of(owner)):
            return await ask(CheckpointServiceStub(channel), context)


def _reason(unready: ChatError) -> str:
    """Return for the user why a workspace cannot be used."""
    if isinstance(unready, WorkspaceNotReady):
        return f"the workspace is {unready.state}"
    return str(unready)


def _add(report: checkpoint_pb2.RestoreReport, more: checkpoint_pb2.RestoreReport) -> None:
    """Add what a further restore did to a report; conflicts come first."""
    report.paths.extend(more.paths)
    report.paths.sort(key=lambda each: each.outcome != checkpoint_pb2.RESTORE_OUTCOME_CONFLICT)
    report.omitted += more.omitted
    report.restored += more.restored
    report.conflicts += more.conflicts
    report.lost += more.lost
    report.incomplete |= more.incomplete
    del report.running_process_ids[:]
    report.running_process_ids.extend(more.running_process_ids)


def _shorten(report: checkpoint_pb2.RestoreReport) -> None:
    """Drop the last paths of a long report, which is stored with the revert."""
    surplus = len(report.paths) - REPORTED_PATHS_MAX
    if surplus > 0:
        del report.paths[REPORTED_PATHS_MAX:]
        report.omitted += surplus
