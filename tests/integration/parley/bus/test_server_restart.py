import asyncio
import os
import signal
from pathlib import Path

import pytest
from sqlalchemy import text

from parley.bus import Notice, PostgresBus, Resync
from parley.postgres import Database, EmbeddedServer
from support.host.supervised import supervision


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT, signal.SIGKILL])
async def test_pools_and_bus_survive_a_restart_of_the_server(
    tmp_path: Path, how: signal.Signals
) -> None:
    async with (
        asyncio.timeout(60),
        EmbeddedServer(tmp_path / "pg").running() as server,
        Database.open(server.admin_url(), application_name="t", connections_max=4) as database,
        PostgresBus.open(
            server.admin_url(), application_name="t", supervision=supervision()
        ) as bus,
        bus.subscribe("chat") as chats,
    ):
        await database.pool.execute("CREATE TABLE acknowledged AS SELECT 7 AS n")
        assert server.pid is not None
        os.kill(server.pid, how)
        await server.wait()
        bus.publish(Notice("chat", "while nobody listened", 1))
        await server.start()
        while await anext(chats) != Resync():
            pass
        bus.publish(Notice("chat", "afterwards", 1))
        while await anext(chats) != Notice("chat", "afterwards", 1):
            pass
        assert await database.pool.fetchval("SELECT n FROM acknowledged") == 7
        async with database.transaction() as connection:
            assert await connection.scalar(text("SELECT n FROM acknowledged")) == 7
