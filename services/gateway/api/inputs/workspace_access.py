"""The bodies of requests about the processes and checkpoints of a chat's workspace."""

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

Command = Annotated[str, msgspec.Meta(min_length=1, max_length=128 * 1024)]
Arguments = Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=4096)]
Cells = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Duration = Annotated[int, msgspec.Meta(ge=0, le=86_400_000)]
Grace = Annotated[int, msgspec.Meta(ge=0, le=60_000)]
Path = Annotated[str, msgspec.Meta(max_length=4096)]
#: `$` alone would also match before a trailing line break.
Label = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=100,
        pattern=r"^[A-Za-z0-9._-]+(?!\n)$",
        description="letters, digits, '.', '_' or '-'",
    ),
]
Reference = Annotated[str, msgspec.Meta(min_length=1, max_length=400)]


class StdinMode(StrEnum):
    """What standard input is."""

    CLOSED = "closed"
    PIPE = "pipe"
    TERMINAL = "terminal"


class Signal(StrEnum):
    """A signal that may be sent."""

    INTERRUPT = "interrupt"
    TERMINATE = "terminate"
    KILL = "kill"
    HANGUP = "hangup"
    STOP = "stop"
    CONTINUE = "continue"


class TerminalInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A terminal to run under."""

    rows: Cells = 24
    columns: Cells = 80


class NewProcess(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /chats/{chat_id}/processes: a command for a shell, or words without one."""

    command: Command | UnsetType = UNSET
    argv: Arguments | UnsetType = UNSET
    workdir: Annotated[str, msgspec.Meta(max_length=4096)] = ""
    environment: Annotated[dict[str, str], msgspec.Meta(max_length=200)] = {}
    terminal: TerminalInput | None = None
    stdin_mode: StdinMode | None = None
    stdin: str = ""
    background: bool = False
    timeout_ms: Duration = 0


class StdinInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST .../stdin: text, or bytes in base64."""

    text: str | UnsetType = UNSET
    data: bytes | UnsetType = UNSET
    end_of_input: bool = False


class SignalInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST .../signal; with a grace, what still runs after it is killed."""

    signal: Signal
    escalate_after_ms: Grace = 0


class NewCheckpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /chats/{chat_id}/checkpoints; the same label replaces."""

    label: Label
    repository: Path = ""


class RestoreInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST .../checkpoints/restore; without paths all files are meant."""

    ref: Reference
    repository: Path = ""
    paths: Annotated[tuple[Path, ...], msgspec.Meta(max_length=1000)] = ()
    if_unchanged_since_ref: Annotated[str, msgspec.Meta(max_length=400)] = ""
    remove_later_files: bool = False
