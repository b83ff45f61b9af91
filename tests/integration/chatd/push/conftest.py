"""ChatService whose push services may not be on this machine."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from parley.postgres import Pool
from support.chatd.chats.served_chats import ServedChats, served_chats


@pytest.fixture
async def strict(pool: Pool, tmp_path: Path) -> AsyncIterator[ServedChats]:
    """ChatService that allows no private push services, as an installation does by default."""
    async with served_chats(pool, tmp_path, push_services="") as running:
        yield running
