"""What a PostgreSQL server executed for all of its clients, by its own log.

The server writes one entry for each statement when it has run, with the id of its transaction if
that wrote anything. An entry is in the file before the client has its answer.
"""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg

MARK = "@@ "
SETTINGS = {
    "log_line_prefix": f"'{MARK}%p|%x|%u|%a|'",
    "log_min_duration_statement": "0",
    "log_parameter_max_length": "0",
}
ENTRY = re.compile(
    r"(?P<session>\d+)\|(?P<written_as>\d+)\|(?P<role>[^|]*)\|(?P<application>[^|]*)\|"
    r"LOG:  duration: [\d.]+ ms  (?:execute [^:]*|statement): (?P<text>.*)",
    re.DOTALL,
)
BEGIN = re.compile(r"(BEGIN|START TRANSACTION)\b", re.IGNORECASE)
END = re.compile(r"(COMMIT|ROLLBACK|END)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Transaction:
    """The statements of one transaction, which is often a single one.

    Attributes:
        is_writing: Whether it changed anything, so that its commit reaches the disk.
    """

    role: str
    application: str
    statements: tuple[str, ...]
    is_writing: bool


class StatementLog:
    """Reads the log from where it was read before."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = path.stat().st_size

    def skip(self) -> None:
        """Forget what was executed until now."""
        self._offset = self._path.stat().st_size

    def read(self) -> tuple[Transaction, ...]:
        """Return what was executed since the last look."""
        with self._path.open("rb") as log:
            log.seek(self._offset)
            written = log.read()
        self._offset += len(written)
        return tuple(transactions_of(written.decode()))


def transactions_of(text: str) -> Iterator[Transaction]:
    """Yield the transactions of a piece of the log in the order of their ends."""
    open_ones: dict[str, list[re.Match[str]]] = {}
    for piece in f"\n{text}".split(f"\n{MARK}"):
        entry = ENTRY.match(piece)
        if entry is None:
            continue
        session = entry["session"]
        if BEGIN.match(entry["text"]):
            open_ones[session] = [entry]
        elif session not in open_ones:
            yield _transaction([entry])
        else:
            open_ones[session].append(entry)
            if END.match(entry["text"]):
                yield _transaction(open_ones.pop(session))
    yield from map(_transaction, open_ones.values())


def _transaction(entries: list[re.Match[str]]) -> Transaction:
    return Transaction(
        role=entries[0]["role"],
        application=entries[0]["application"],
        statements=tuple(" ".join(entry["text"].split()) for entry in entries),
        is_writing=any(entry["written_as"] != "0" for entry in entries),
    )


@asynccontextmanager
async def logging_statements(
    admin: "asyncpg.Connection[asyncpg.Record]", path: Path
) -> AsyncIterator[StatementLog]:
    """Let the server log every statement into the file at `path`, until the end."""
    try:
        for name, value in SETTINGS.items():
            await admin.execute(f"ALTER SYSTEM SET {name} = {value}")
        await admin.execute("SELECT pg_reload_conf()")
        while await admin.fetchval("SHOW log_min_duration_statement") != "0":
            await admin.execute("SELECT pg_sleep(0.01)")
        yield StatementLog(path)
    finally:
        for name in SETTINGS:
            await admin.execute(f"ALTER SYSTEM RESET {name}")
        await admin.execute("SELECT pg_reload_conf()")
