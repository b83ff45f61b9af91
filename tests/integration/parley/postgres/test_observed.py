"""What the server sees of the trace that a statement belongs to."""

from sqlalchemy import text

from parley.postgres import Database
from parley.telemetry import InMemoryTelemetry, Statements

# Every session sees the text of its own statement as the server got it.
SEEN = "SELECT query FROM pg_stat_activity WHERE pid = pg_backend_pid()"


async def test_a_recorded_trace_reaches_the_server_through_pool_and_engine(
    empty_database: str,
) -> None:
    memory = InMemoryTelemetry()
    statements = Statements(memory.telemetry, lambda: "test")
    async with Database.open(
        empty_database, application_name="t", connections_max=4, statements=statements
    ) as database:
        with memory.telemetry.tracer.start_as_current_span("request") as request:
            rows = [await database.pool.fetchrow(SEEN), *await database.pool.fetch(SEEN)]
            from_pool = [await database.pool.fetchval(SEEN), *(row["query"] for row in rows if row)]
            async with database.reading() as connection:
                from_engine = await connection.scalar(text(SEEN))
        trace = f"traceparent='00-{request.get_span_context().trace_id:032x}-"
        assert all(trace in seen for seen in (*from_pool, from_engine))
        assert {span.name for span in memory.spans()} == {"request", "SELECT pg_stat_activity"}


async def test_without_a_recorded_trace_the_text_is_the_same_every_time(
    empty_database: str,
) -> None:
    memory = InMemoryTelemetry()
    statements = Statements(memory.telemetry, lambda: "chat.ChatService/GetChat")
    async with Database.open(
        empty_database, application_name="t", connections_max=4, statements=statements
    ) as database:
        assert await database.pool.fetchval(SEEN) == SEEN
        async with database.transaction() as connection:
            await connection.execute(text("CREATE TABLE t (a int)"))
        await database.pool.execute("INSERT INTO t VALUES (1)")
        await database.pool.executemany("INSERT INTO t VALUES ($1)", [(2,), (3,)])
    shown = memory.telemetry.metrics_text()
    labels = 'operation="chat.ChatService/GetChat"'
    assert f'db_query_summary="SELECT pg_stat_activity",{labels}}} 1.0' in shown
    assert f'db_query_summary="INSERT t",{labels}}} 2.0' in shown
