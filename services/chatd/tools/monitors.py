"""The tool `monitor_process`: asks to be woken when a background process prints a line or ends."""

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated, Final, Protocol

import grpc
import msgspec

from chatd.chats.domain.errors import FenceLost
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.sanitizing import sanitized
from chatd.content.domain.tools import (
    MONITOR_PROCESS,
    Execution,
    Executor,
    Found,
    InputRequired,
    NeverSeen,
    Outcome,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.monitors.domain.monitor import (
    COMMAND_CHARACTERS_MAX,
    NOTE_CHARACTERS_MAX,
    OPEN_MAX,
    PATTERN_CHARACTERS_MAX,
    SECONDS_MAX,
    Monitor,
    MonitorRefused,
    storable,
)
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId, Owner, OwnerClaim, OwnerId
from chatd.tools.workspace.arguments import BadArguments, Input, read, schema_of, seconds_of
from chatd.tools.workspace.call import NodeAway
from chatd.tools.workspace.not_ready import not_ready
from chatd.tools.workspace.process_results import is_running, process_outcome
from chatd.tools.workspace.process_wait import Observed
from chatd.tools.workspace.processes import CURSOR_MAX
from chatd.tools.workspace.results import failed, misused, refused, succeeded
from chatd.workspaces.clients.failures import plain_problem
from parley.api.workspace.v1 import process_pb2
from parley.api.workspace.v1 import process_service_pb2 as api

LOOK_S: Final = 30.0
OUTPUT_BYTES: Final = 1024
ALREADY: Final = "This is so already: there is nothing to wait for, and no monitor was made."
HINT: Final = "Wait for the process with process_output instead."


class MonitorProcessInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `monitor_process`."""

    process_id: Annotated[
        str,
        msgspec.Meta(
            min_length=1, max_length=64, description="The process_id that execute returned."
        ),
    ]
    pattern: Annotated[
        str,
        msgspec.Meta(
            max_length=PATTERN_CHARACTERS_MAX,
            description="Regular expression (RE2) for a line of its output; leave it out to wait "
            "for its end alone.",
        ),
    ] = ""
    since: Annotated[
        int,
        msgspec.Meta(
            ge=0,
            le=CURSOR_MAX,
            description="Cursor after which lines count; the next_cursor of the last answer leaves "
            "out what you have seen.",
        ),
    ] = 0
    timeout: Annotated[
        str,
        msgspec.Meta(
            description='You are woken after this time in any case, such as "30m"; at most 24h.'
        ),
    ] = "1h"
    note: Annotated[
        str,
        msgspec.Meta(
            max_length=NOTE_CHARACTERS_MAX,
            description="What to do when you are woken; you get it back then.",
        ),
    ] = ""


SPEC: Final = ToolSpec(
    MONITOR_PROCESS,
    "Be woken when a background process prints a line that matches, or ends. Use it instead of "
    "waiting for something that takes long: end your turn, and a message wakes you once. The end "
    f"of the process and the timeout wake you, too. At most {OPEN_MAX} at a time.",
    schema_of(MonitorProcessInput),
    Executor.CHATD,
)


class MonitorStore(Protocol):
    """Stores monitors."""

    async def has(self, chat_id: ChatId, owner_id: OwnerId, monitor_id: str) -> bool:
        """Return whether a chat has a monitor, whatever became of it."""
        ...

    async def add(self, monitor: Monitor, claim: OwnerClaim) -> None:
        """Add a monitor, unless a repeated call added it before.

        Raises:
            FenceLost: Another process owns the chat, and nothing was added.
            MonitorRefused: The chat may not have another one.
        """
        ...


class WatchedProcesses(Protocol):
    """Reads processes that are to be watched."""

    async def snapshot(
        self, chat_id: ChatId, owner: Owner, process_id: str, pattern: str, since: int
    ) -> api.WaitOutputResponse:
        """Return a process as it is now, with a line after a cursor that matches.

        Raises:
            ChatError: The chat has no workspace that can be read now.
            NodeAway: Its node does not answer.
            grpc.aio.AioRpcError: The node refused.
        """
        ...


class MonitorTools:
    """Offers monitors to root chats.

    Args:
        store: Stores monitors.
        processes: Reads processes.
        now: Returns the current time.
    """

    names = frozenset({MONITOR_PROCESS})

    def __init__(
        self, store: MonitorStore, processes: WatchedProcesses, now: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._processes = processes
        self._now = now

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        """Return the tool for root chats that may change something."""
        is_offered = context.mode is ChatMode.ORDINARY and not context.is_child
        return (SPEC,) if is_offered else ()

    async def execute(self, execution: Execution) -> Outcome | InputRequired:
        """Store a monitor; every refusal is the result of the call."""
        try:
            given = read(MonitorProcessInput, execution.dispatch.call.args_json)
            return await self._added(execution, given, timeout_of(given.timeout))
        except BadArguments as error:
            return misused(error)
        except MonitorRefused as error:
            return failed(str(error), "TOO_MANY_MONITORS", HINT)
        except NodeAway as away:
            return failed(str(away), "UNREACHABLE", "Call it again later.")
        except grpc.aio.AioRpcError as error:
            return refused(plain_problem(error))
        except FenceLost:
            raise  # The result would be refused as well: the new owner makes the call.
        except ChatError as unready:
            return not_ready(unready)

    async def _added(
        self, execution: Execution, given: MonitorProcessInput, lifetime: timedelta
    ) -> Outcome:
        if "\0" in given.pattern:
            raise BadArguments("pattern: it contains NUL", "leave it out of the expression")
        execution_id, chat_id = execution.dispatch.execution_id, execution.chat_id
        monitor_id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"monitor of {execution_id}"))
        if await self._store.has(chat_id, execution.owner.id, monitor_id):
            # A call before a crash added it; what the process did since wakes the chat.
            return _added_as(monitor_id, given.process_id)
        found = await self._processes.snapshot(
            chat_id, execution.owner, given.process_id, given.pattern, given.since
        )
        if found.reason == process_pb2.WAIT_REASON_MATCHED or not is_running(found.process):
            seen = Observed(found.process, found.output, found.reason)
            return process_outcome(seen, notes=(ALREADY,), shows_command=True)
        now = self._now()
        monitor = Monitor(
            id=monitor_id,
            chat_id=chat_id,
            owner=execution.owner,
            process_id=given.process_id,
            command=command_of(found.process),
            pattern=given.pattern,
            note=sanitized(given.note),
            cursor=max(given.since, found.search_cursor),
            created_at=now,
            expires_at=now + lifetime,
        )
        await self._store.add(monitor, execution.claim)
        return _added_as(monitor_id, given.process_id)

    async def find(self, execution: Execution) -> Found:
        """Return that a call may be made again: a repeated one adds nothing."""
        return NeverSeen()

    async def cancel(self, execution: Execution) -> None:
        """Do nothing: a call takes no time."""


def _added_as(monitor_id: str, process_id: str) -> Outcome:
    return succeeded(
        {"monitor_id": monitor_id, "process_id": process_id},
        next_step="End your turn when nothing else is to do; a message wakes you.",
    )


def timeout_of(text: str) -> timedelta:
    """Return after which time a chat is woken in any case.

    Raises:
        BadArguments: It is no duration, or none that is allowed.
    """
    seconds = seconds_of(text, "timeout")
    if not 1 <= seconds <= SECONDS_MAX:
        raise BadArguments("timeout: it is not between 1s and 24h", "give another timeout")
    return timedelta(seconds=seconds)


def command_of(process: process_pb2.Process) -> str:
    """Return the beginning of the command of a process in one line, without backquotes."""
    return storable(process.command.replace("`", "'"), COMMAND_CHARACTERS_MAX)
