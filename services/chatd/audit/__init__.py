"""The auditor: the invariants of a chat database, and the code that checks them."""

from chatd.audit.finding import IDS_MAX, Finding
from chatd.audit.histories import HISTORY_INVARIANTS, HistoryInvariant
from chatd.audit.invariants import SQL_INVARIANTS, SqlInvariant
from chatd.audit.liveness import LIVE_INVARIANTS
from chatd.audit.running import WrongDatabase, audit

__all__ = [
    "HISTORY_INVARIANTS",
    "IDS_MAX",
    "LIVE_INVARIANTS",
    "SQL_INVARIANTS",
    "Finding",
    "HistoryInvariant",
    "SqlInvariant",
    "WrongDatabase",
    "audit",
]
