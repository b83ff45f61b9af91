"""A pool that remembers which statements it was given."""

from typing import Any

from parley.postgres import Pool

STATEMENTS = frozenset({"fetch", "fetchrow", "fetchval", "execute"})


class CountedPool:
    """Passes everything on to a pool.

    Attributes:
        statements: What was executed, the oldest first.
    """

    def __init__(self, pool: Pool) -> None:
        self.statements: list[str] = []
        self._pool = pool

    def __getattr__(self, name: str) -> Any:
        passed_on = getattr(self._pool, name)
        if name not in STATEMENTS:
            return passed_on

        async def executed(statement: str, *arguments: object, **options: Any) -> Any:
            self.statements.append(statement)
            return await passed_on(statement, *arguments, **options)

        return executed
