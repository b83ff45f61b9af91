import asyncpg

from support.database.postgres import TestPostgres


async def test_a_template_is_prepared_once_and_every_database_starts_from_it(
    postgres: TestPostgres,
) -> None:
    prepared = []

    async def prepare(url: str) -> None:
        prepared.append(url)
        await run(url, "CREATE TABLE counted (n int)")

    for _ in range(2):
        async with postgres.database(template="counting", prepare=prepare) as url:
            await run(url, "INSERT INTO counted VALUES (1)")
            assert await run(url, "SELECT count(*) FROM counted") == 1
    assert len(prepared) == 1


async def run(url: str, statement: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()
