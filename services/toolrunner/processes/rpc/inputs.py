"""Parsing of requests, with the limits of the protos."""

import hashlib
import re
import shlex
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, Protocol

from google.protobuf.message import Message

from parley.api.workspace.v1 import (
    execution_pb2,
    process_pb2,
    sandbox_pb2,
    workspace_pb2,
)
from parley.api.workspace.v1 import process_service_pb2 as api
from parley.rpc import remaining_s
from toolrunner.journal.records import Effect, Key, ProcessRecord, StdinMode
from toolrunner.primitives.domain import (
    NO_CHAT,
    ChatId,
    ExecutionId,
    Limits,
    ProcessId,
    Scope,
    WorkspaceId,
)
from toolrunner.primitives.errors import InvalidRequest
from toolrunner.processes.domain import SHELL, ProcessSpec, TerminalSize
from toolrunner.processes.input import InputWrite
from toolrunner.processes.output.excerpt import MAX_BYTES, Budget
from toolrunner.processes.output.log import LOG_BYTES
from toolrunner.processes.terminal_keys import bytes_of_keys
from toolrunner.processes.wait import PATTERN_CHARACTERS_MAX, Until, Wait
from toolrunner.sandbox import Network, Profile

REQUEST_ID_MAX: Final = 128
GENERATION_MAX: Final = 64
COMMAND_BYTES_MAX: Final = 128 * 1024
COMMAND_SHOWN_BYTES: Final = 4096
ARGUMENTS_MAX: Final = 4096
ARGUMENTS_BYTES_MAX: Final = 1024 * 1024
WORKDIR_BYTES_MAX: Final = 4096
VARIABLES_MAX: Final = 200
VARIABLES_BYTES_MAX: Final = 64 * 1024
TIMEOUT_MS_MAX: Final = 86_400_000
LOG_BYTES_MAX: Final = 1024**3
CPU_MILLICORES_MAX: Final = 1_024_000
MEMORY_BYTES_MAX: Final = 1024**5
PIDS_MAX: Final = 32_768
BUDGET_BYTES_MAX: Final = 1024 * 1024
STDIN_BYTES_MAX: Final = 1024 * 1024
KEYS_MAX: Final = 100
TERMINAL_MAX: Final = 1000
WAIT_MS_MAX: Final = 300_000
#: Fields of a start request that are ignored when it is compared with an earlier one.
WAITING_FIELDS: Final = ("condition", "budget")
#: Reserved for the response to arrive before the deadline.
ANSWER_S: Final = 2.0

UNTIL: Final = {
    process_pb2.WAIT_UNTIL_UNSPECIFIED: Until.EXIT,
    process_pb2.WAIT_UNTIL_EXIT: Until.EXIT,
    process_pb2.WAIT_UNTIL_OUTPUT: Until.OUTPUT,
    process_pb2.WAIT_UNTIL_MATCH: Until.MATCH,
    process_pb2.WAIT_UNTIL_SNAPSHOT: Until.SNAPSHOT,
}

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class EffectRequest(Protocol):
    """The common fields of requests that change something."""

    request_id: str

    @property
    def key(self) -> execution_pb2.ExecutionKey:
        """The execution, if there is one."""
        ...

    @property
    def context(self) -> workspace_pb2.WorkspaceContext:
        """The workspace and the chat."""
        ...


def canonical_uuid(text: str, field: str) -> str:
    """Return a UUID in canonical form.

    Raises:
        InvalidRequest: It is not a UUID.
    """
    try:
        return str(uuid.UUID(text))
    except ValueError as error:
        raise InvalidRequest(field, "is not a UUID") from error


def scope_of(context: workspace_pb2.WorkspaceContext) -> Scope:
    """Return the workspace and the chat of a call."""
    workspace_id = canonical_uuid(context.workspace_id, "context.workspace_id")
    chat_id = context.chat_id and canonical_uuid(context.chat_id, "context.chat_id")
    if context.epoch < 0:
        raise InvalidRequest("context.epoch", "is negative")
    if context.turn_id < 0:
        raise InvalidRequest("context.turn_id", "is negative")
    return Scope(
        WorkspaceId(workspace_id),
        ChatId(chat_id) if chat_id else NO_CHAT,
        context.epoch,
        context.turn_id,
        may_write=profile_of(context) is not Profile.READ_ONLY,
    )


def profile_of(context: workspace_pb2.WorkspaceContext) -> Profile:
    """Return what a call may write: nothing, unless it says so."""
    return PROFILES.get(context.profile, Profile.READ_ONLY)


def process_id_of(text: str) -> ProcessId:
    """Return the id of a process."""
    return ProcessId(canonical_uuid(text, "process_id"))


def key_of(key: execution_pb2.ExecutionKey) -> Key:
    """Return the key of an execution."""
    if not 1 <= len(key.execution_id) <= REQUEST_ID_MAX:
        raise InvalidRequest("key.execution_id", f"needs 1 to {REQUEST_ID_MAX} characters")
    if key.owner_epoch < 1:
        raise InvalidRequest("key.owner_epoch", "is less than 1")
    if len(key.journal_generation) > GENERATION_MAX:
        raise InvalidRequest("key.journal_generation", f"has over {GENERATION_MAX} characters")
    return Key(
        execution_id=ExecutionId(key.execution_id),
        chat_id=ChatId(canonical_uuid(key.chat_id, "key.chat_id")),
        owner_epoch=key.owner_epoch,
        journal_generation=key.journal_generation,
    )


def request_id_of(text: str) -> str:
    """Return a request id within its limits."""
    if not 1 <= len(text) <= REQUEST_ID_MAX:
        raise InvalidRequest("request_id", f"needs 1 to {REQUEST_ID_MAX} characters")
    return text


def effect_of(
    request: EffectRequest,
    scope: Scope,
    *,
    method: str,
    encode: Callable[[ProcessRecord], bytes],
    aside: tuple[str, ...] = (),
) -> Effect:
    """Return a request that changes something, for the journal.

    Args:
        request: The request.
        scope: Its workspace and chat.
        method: The full name of the method.
        encode: Encodes the response.
        aside: Fields in which a repeated request may differ.
    """
    key = effect_key_of(request, scope)
    body_hash = body_hash_of(request, *aside)
    return Effect(request.request_id, key, method, body_hash, encode, scope.workspace_id)


def effect_key_of(request: EffectRequest, scope: Scope) -> Key | None:
    """Return the key of a request that changes something, checked against its id and its chat.

    Raises:
        InvalidRequest: They do not match, or are outside their limits.
    """
    request_id = request_id_of(request.request_id)
    if not _has_key(request):
        return None
    key = key_of(request.key)
    if key.execution_id != request_id:
        raise InvalidRequest("key.execution_id", "is not the request id")
    if key.chat_id != scope.chat_id:
        raise InvalidRequest("key.chat_id", "is not the chat of the context")
    return replace(key, workspace_id=scope.workspace_id)


PROFILES: Final = {
    sandbox_pb2.SANDBOX_PROFILE_READ_ONLY: Profile.READ_ONLY,
    sandbox_pb2.SANDBOX_PROFILE_WORKSPACE_WRITE: Profile.WORKSPACE_WRITE,
    sandbox_pb2.SANDBOX_PROFILE_FULL: Profile.FULL,
}
NETWORKS: Final = {
    sandbox_pb2.NETWORK_ACCESS_NONE: Network.NONE,
    sandbox_pb2.NETWORK_ACCESS_PROXY: Network.PROXY,
    sandbox_pb2.NETWORK_ACCESS_OPEN: Network.OPEN,
}


def spec_of(spec: process_pb2.ProcessSpec, context: workspace_pb2.WorkspaceContext) -> ProcessSpec:
    """Return what to run, and how to confine it.

    Raises:
        InvalidRequest: A field is outside its limits, or asks for an unsupported feature.
    """
    argv, command = _program(spec)
    if len(spec.workdir.encode()) > WORKDIR_BYTES_MAX or "\0" in spec.workdir:
        raise InvalidRequest("spec.workdir", f"is no path of at most {WORKDIR_BYTES_MAX} bytes")
    if not 0 <= spec.timeout_ms <= TIMEOUT_MS_MAX:
        raise InvalidRequest("spec.timeout_ms", f"is not between 0 and {TIMEOUT_MS_MAX}")
    return ProcessSpec(
        argv=argv,
        command=command.encode()[:COMMAND_SHOWN_BYTES].decode(errors="ignore"),
        workdir=spec.workdir,
        environment=variables_of(spec.environment, "spec.environment"),
        is_background=spec.background,
        timeout_s=spec.timeout_ms / 1000,
        log_bytes_max=_log_bytes(spec),
        stdin_mode=_stdin_mode(spec),
        stdin=_stdin(spec.stdin, "spec.stdin"),
        terminal=(
            size_of(spec.terminal, "spec.terminal") if spec.HasField("terminal") else TerminalSize()
        ),
        profile=profile_of(context),
        network=NETWORKS.get(context.network),
        limits=_limits(spec.limits),
        needs_owner=spec.needs_owner,
    )


def budget_of(budget: process_pb2.OutputBudget) -> Budget:
    """Return the budget of an excerpt."""
    if not 0 <= budget.max_bytes <= BUDGET_BYTES_MAX:
        raise InvalidRequest("budget.max_bytes", f"is not between 0 and {BUDGET_BYTES_MAX}")
    max_bytes = budget.max_bytes or MAX_BYTES
    has_head = budget.HasField("head_bytes")
    if has_head and not 0 <= budget.head_bytes <= max_bytes:
        raise InvalidRequest("budget.head_bytes", f"is not between 0 and {max_bytes}")
    if budget.line_bytes < 0:
        raise InvalidRequest("budget.line_bytes", "is negative")
    return Budget(
        max_bytes=max_bytes,
        head_bytes=budget.head_bytes if has_head else None,
        line_bytes=budget.line_bytes or None,
        keeps_escapes=budget.keep_escapes,
    )


def size_of(size: process_pb2.TerminalSize, field: str) -> TerminalSize:
    """Return the size of a terminal."""
    if not (1 <= size.rows <= TERMINAL_MAX and 1 <= size.columns <= TERMINAL_MAX):
        raise InvalidRequest(field, f"needs 1 to {TERMINAL_MAX} rows and columns")
    return TerminalSize(size.rows, size.columns)


def writing_of(request: api.WriteStdinRequest) -> InputWrite:
    """Return the data to write."""
    if len(request.keys) > KEYS_MAX:
        raise InvalidRequest("keys", f"has over {KEYS_MAX} keys")
    data, keys = _stdin(request.data, "data"), bytes_of_keys(request.keys)
    if not (data or keys or request.end_of_input):
        raise InvalidRequest("data", "is empty, and there is no key and no end of input")
    return InputWrite(data, keys, request.end_of_input)


def wait_of(
    condition: process_pb2.WaitCondition,
    *,
    since_cursor: int,
    budget: process_pb2.OutputBudget,
    default: "process_pb2.WaitUntil.ValueType" = process_pb2.WAIT_UNTIL_EXIT,
) -> Wait:
    """Return the condition to wait for, within the deadline of the current call."""
    until = UNTIL.get(condition.until or default)
    if until is None:
        raise InvalidRequest("condition.until", "is nothing that can be waited for")
    if not 0 <= condition.max_wait_ms <= WAIT_MS_MAX:
        raise InvalidRequest("condition.max_wait_ms", f"is not between 0 and {WAIT_MS_MAX}")
    if until is Until.MATCH and not 1 <= len(condition.pattern) <= PATTERN_CHARACTERS_MAX:
        problem = f"needs 1 to {PATTERN_CHARACTERS_MAX} characters"
        raise InvalidRequest("condition.pattern", problem)
    if since_cursor < 0:
        raise InvalidRequest("since_cursor", "is negative")
    left_s, wanted_s = remaining_s(), condition.max_wait_ms / 1000
    return Wait(
        until=until,
        max_wait_s=wanted_s if left_s is None else min(wanted_s, max(0.0, left_s - ANSWER_S)),
        since_cursor=since_cursor,
        budget=budget_of(budget),
        pattern=condition.pattern,
    )


def start_wait_of(request: api.StartProcessRequest) -> Wait | None:
    """Return the condition to wait for after a start, None for none.

    Raises:
        InvalidRequest: It is not a valid condition for a start.
    """
    if not request.HasField("condition"):
        return None
    if request.condition.until == process_pb2.WAIT_UNTIL_MATCH:
        raise InvalidRequest("condition.until", "is no match: wait for that with WaitOutput")
    return wait_of(request.condition, since_cursor=0, budget=request.budget)


def variables_of(environment: Mapping[str, str], field: str) -> dict[str, str]:
    """Return the declared variables of processes."""
    size = sum(len(name.encode()) + len(value.encode()) for name, value in environment.items())
    if len(environment) > VARIABLES_MAX or size > VARIABLES_BYTES_MAX:
        problem = f"has over {VARIABLES_MAX} variables or {VARIABLES_BYTES_MAX} bytes"
        raise InvalidRequest(field, problem)
    for name, value in environment.items():
        if not _VARIABLE.fullmatch(name) or "\0" in value:
            raise InvalidRequest(f"{field}[{name!r}]", "is no variable")
    return dict(environment)


def _stdin_mode(spec: process_pb2.ProcessSpec) -> StdinMode:
    """Return the kind of standard input; with a terminal it is always the terminal."""
    is_terminal = spec.stdin_mode == process_pb2.STDIN_MODE_TERMINAL or spec.HasField("terminal")
    if is_terminal:
        return StdinMode.TERMINAL
    is_pipe = spec.stdin_mode == process_pb2.STDIN_MODE_PIPE
    return StdinMode.PIPE if is_pipe else StdinMode.CLOSED


def _log_bytes(spec: process_pb2.ProcessSpec) -> int:
    for field, given in (
        ("spec.log_bytes", spec.log_bytes),
        ("spec.limits.output_bytes", spec.limits.output_bytes),
    ):
        if not 0 <= given <= LOG_BYTES_MAX:
            raise InvalidRequest(field, f"is not between 0 and {LOG_BYTES_MAX}")
    return min(spec.log_bytes or LOG_BYTES, spec.limits.output_bytes or LOG_BYTES_MAX)


def _stdin(data: bytes, field: str) -> bytes:
    if len(data) > STDIN_BYTES_MAX:
        raise InvalidRequest(field, f"has over {STDIN_BYTES_MAX} bytes; write them in pieces")
    return data


def _program(spec: process_pb2.ProcessSpec) -> tuple[tuple[str, ...], str]:
    match spec.WhichOneof("program"):
        case "command":
            if not 1 <= len(spec.command.encode()) <= COMMAND_BYTES_MAX or "\0" in spec.command:
                problem = f"needs 1 to {COMMAND_BYTES_MAX} bytes, none of them NUL"
                raise InvalidRequest("spec.command", problem)
            return (SHELL, "-c", spec.command), spec.command
        case "argv":
            arguments = tuple(spec.argv.arguments)
            size = sum(len(argument.encode()) + 1 for argument in arguments)
            if not (1 <= len(arguments) <= ARGUMENTS_MAX and arguments[0]):
                problem = f"needs a program and at most {ARGUMENTS_MAX} words"
                raise InvalidRequest("spec.argv.arguments", problem)
            if size > ARGUMENTS_BYTES_MAX or any("\0" in argument for argument in arguments):
                problem = f"has over {ARGUMENTS_BYTES_MAX} bytes, or a NUL"
                raise InvalidRequest("spec.argv.arguments", problem)
            return arguments, shlex.join(arguments)
        case _:
            raise InvalidRequest("spec.program", "is missing; give a command or argv")


def _limits(limits: sandbox_pb2.ResourceLimits) -> Limits:
    """Return the limits of a process; refuse those that cannot be enforced.

    Raises:
        InvalidRequest: One is out of range, or cannot be enforced for one process.
    """
    if limits.disk_bytes or limits.inodes:
        field = "disk_bytes" if limits.disk_bytes else "inodes"
        problem = "cannot be kept for one process; it belongs to the workspace, so leave it out"
        raise InvalidRequest(f"spec.limits.{field}", problem)
    for field, given, most in (
        ("cpu_millicores", limits.cpu_millicores, CPU_MILLICORES_MAX),
        ("memory_bytes", limits.memory_bytes, MEMORY_BYTES_MAX),
        ("pids", limits.pids, PIDS_MAX),
    ):
        if not 0 <= given <= most:
            raise InvalidRequest(f"spec.limits.{field}", f"is not between 0 and {most}")
    return Limits(
        memory_bytes=limits.memory_bytes,
        pids=limits.pids,
        cpu_millicores=limits.cpu_millicores,
    )


def _has_key(request: EffectRequest) -> bool:
    return isinstance(request, Message) and request.HasField("key")


def body_hash_of(request: EffectRequest, *aside: str) -> bytes:
    """Hash a request without its key: a new owner repeats it with another epoch."""
    assert isinstance(request, Message)
    body = type(request)()
    body.CopyFrom(request)
    for field in ("key", *aside):
        body.ClearField(field)
    if body.HasField("context"):
        # Who started the chat is no part of what is done, and older callers do not tell it.
        body.context.ClearField("ancestor_chat_ids")
    return hashlib.sha256(body.SerializeToString(deterministic=True)).digest()
