"""Connections whose statements are measured and traced."""

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

import asyncpg
from sqlalchemy import Engine, event

from parley.telemetry import Statements


def observed_connection(statements: Statements) -> type["asyncpg.Connection[asyncpg.Record]"]:
    """Return a connection class that reports every statement to `statements`.

    asyncpg's pool accepts a connection class, but no other argument for its connections.
    """

    class Observed(asyncpg.Connection):
        async def execute(self, query: str, *args: Any, **options: Any) -> str:
            with statements.observed(query) as text:
                return await super().execute(text, *args, **options)

        async def executemany(self, command: str, args: Iterable[Any], **options: Any) -> None:
            with statements.observed(command) as text:
                await super().executemany(text, args, **options)

        async def fetch(self, query: str, *args: Any, **options: Any) -> Any:
            with statements.observed(query) as text:
                return await super().fetch(text, *args, **options)

        async def fetchrow(self, query: str, *args: Any, **options: Any) -> Any:
            with statements.observed(query) as text:
                return await super().fetchrow(text, *args, **options)

        async def fetchval(self, query: str, *args: Any, **options: Any) -> Any:
            with statements.observed(query) as text:
                return await super().fetchval(text, *args, **options)

    return Observed


def observe_engine(engine: Engine, statements: Statements) -> None:
    """Report every statement of an engine to `statements`."""

    @event.listens_for(engine, "before_cursor_execute", retval=True)
    def begin(
        connection: Any, cursor: Any, text: str, values: Any, context: Any, is_many: bool
    ) -> tuple[str, Any]:
        context.observed = ExitStack()
        return context.observed.enter_context(statements.observed(text)), values

    @event.listens_for(engine, "after_cursor_execute")
    def end(*arguments: Any) -> None:
        arguments[4].observed.close()

    @event.listens_for(engine, "handle_error")
    def fail(failed: Any) -> None:
        context = failed.execution_context
        if hasattr(context, "observed"):
            context.observed.close()
