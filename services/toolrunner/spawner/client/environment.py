"""The environment of processes, which inherits nothing from the environment of the service."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from toolrunner.primitives.domain import ChatId, ProcessId
from toolrunner.spawner import PROCESS_MARK

SEARCH_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#: No user answers an editor, a pager or a password prompt, so none is opened.
NON_INTERACTIVE: Final[Mapping[str, str]] = {
    "COLORTERM": "",
    "EDITOR": "true",
    "GH_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_PAGER": "cat",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "PARLEY_AGENT": "true",
    "TERM": "dumb",
    "VISUAL": "true",
}


#: A user sees the terminal, so programs may use colours and cursor control.
TERMINAL: Final[Mapping[str, str]] = {"COLORTERM": "truecolor", "TERM": "xterm-256color"}


def environment_of(
    *,
    process_id: ProcessId,
    chat_id: ChatId,
    home: Path,
    temporary: Path,
    declared: Mapping[str, str],
    has_terminal: bool = False,
) -> dict[str, str]:
    """Return all variables of a process; declared ones override, except the process mark."""
    return {
        "PATH": SEARCH_PATH,
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TMPDIR": str(temporary),
        **NON_INTERACTIVE,
        **(TERMINAL if has_terminal else {}),
        **({"PARLEY_CHAT_ID": chat_id} if chat_id else {}),
        **declared,
        PROCESS_MARK: process_id,
    }
