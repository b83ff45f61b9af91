"""Everything a decision can ask the store to write beside the execution row."""

from dataclasses import dataclass

from chatd.domain.chat import NewMessage
from chatd.domain.tools import Dispatch


@dataclass(frozen=True, slots=True)
class AppendMessages:
    """Add messages to the end of the history, numbered in order."""

    messages: tuple[NewMessage, ...]


@dataclass(frozen=True, slots=True)
class RecordDispatches:
    """Remember tool calls as dispatched, before any of them leaves."""

    dispatches: tuple[Dispatch, ...]


Write = AppendMessages | RecordDispatches
