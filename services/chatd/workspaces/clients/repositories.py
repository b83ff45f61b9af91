"""Reads the Git status of workspaces from nodes, and detects calls that may change files."""

from collections.abc import Callable, Sequence
from typing import Final

import grpc

from chatd.chats.domain.diffs import DiffStatus, RepositoriesUnknown
from chatd.content.domain.tools import (
    APPLY_CHILD_CHANGES,
    Execution,
    Executor,
    Found,
    InputRequired,
    Outcome,
    Tools,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.users.clients.existence import user_of
from chatd.workspaces.clients.failures import MOVED, plain_problem
from chatd.workspaces.domain.ports import WorkspaceLocation, WorkspaceLocator
from parley.api.workspace.v1 import (
    git_pb2,
    git_service_pb2,
    sandbox_pb2,
    workspace_pb2,
)
from parley.api.workspace.v1.git_service_pb2_grpc import GitServiceStub
from parley.clock import Clock
from parley.rpc import Address, Channels, acting_for

ANSWER_S: Final = 30.0
#: Workspace tools that change no file; a process whose output is read may change some.
READERS: Final = frozenset(
    {"attach_file", "find_files", "list_files", "process_list", "read_file", "search_files"}
)


class _Moved(Exception):
    """The workspace is at another location."""


class NodeRepositories:
    """Sends requests to the nodes of chats."""

    def __init__(self, channels: Channels, clock: Clock, locator: WorkspaceLocator) -> None:
        self._channels = channels
        self._clock = clock
        self._locator = locator

    async def status(self, chat_id: ChatId, owner: Owner) -> DiffStatus | None:
        """Return the diff status of a chat's workspace; None if it has no repository.

        Raises:
            RepositoriesUnknown: The node does not return it.
        """
        try:
            # Requested soon after a call, so the location of that call is cached.
            return await self._asked(await self._locator.last_known(chat_id), chat_id, owner)
        except _Moved:
            self._locator.forget(chat_id)
        except ChatError as nowhere:
            raise RepositoriesUnknown(str(nowhere)) from nowhere
        try:
            return await self._asked(await self._locator.locate(chat_id), chat_id, owner)
        except (ChatError, _Moved) as nowhere:
            raise RepositoriesUnknown(str(nowhere)) from nowhere

    async def _asked(
        self, location: WorkspaceLocation, chat_id: ChatId, owner: Owner
    ) -> DiffStatus | None:
        stub = GitServiceStub(self._channels.also(Address.parse(location.address)))
        context = workspace_pb2.WorkspaceContext(
            workspace_id=location.workspace_id,
            epoch=location.epoch,
            chat_id=chat_id,
            # It only looks; a read-only profile would end what the chat runs.
            profile=sandbox_pb2.SANDBOX_PROFILE_WORKSPACE_WRITE,
        )
        try:
            with acting_for(user_of(owner)):
                found = await stub.GetStatus(
                    git_service_pb2.GetStatusRequest(context=context), timeout=ANSWER_S
                )
        except grpc.aio.AioRpcError as error:
            problem = plain_problem(error)
            if problem.reason in MOVED:
                raise _Moved(problem.message) from error
            raise RepositoriesUnknown(problem.message) from error
        return self._status(found.repositories)

    def _status(self, repositories: Sequence[git_pb2.GitRepository]) -> DiffStatus | None:
        if not repositories:
            return None
        return DiffStatus(
            branch=repositories[0].branch,
            origin_url=repositories[0].origin_url,
            repositories=len(repositories),
            changed_files=sum(len(each.files) + each.omitted_files for each in repositories),
            added_lines=sum(each.added_lines for each in repositories),
            deleted_lines=sum(each.deleted_lines for each in repositories),
            refreshed_at=self._clock.now(),
        )


class ChangeTrackingTools:
    """Wraps tools and calls `files_changed` after calls that may have changed files."""

    def __init__(self, tools: Tools, files_changed: Callable[[ChatId, Owner], None]) -> None:
        self._tools = tools
        self._files_changed = files_changed

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        """Return the tools of the wrapped source."""
        return await self._tools.list_tools(context)

    async def execute(self, execution: Execution) -> Outcome | InputRequired:
        """Execute a call."""
        try:
            return await self._tools.execute(execution)
        finally:
            dispatch = execution.dispatch
            name = dispatch.call.tool_name
            is_of_workspace = dispatch.executor is Executor.TOOLRUNNER
            if name == APPLY_CHILD_CHANGES or (is_of_workspace and name not in READERS):
                self._files_changed(execution.chat_id, execution.owner)

    async def find(self, execution: Execution) -> Found:
        """Forward the request."""
        return await self._tools.find(execution)

    async def cancel(self, execution: Execution) -> None:
        """Forward the cancellation."""
        await self._tools.cancel(execution)
