from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from parley.client import Parley, connect
from support.client.chat_service import FakeChatd, Tokens, fake_chatd


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens(tmp_path)


@pytest.fixture
async def chatd(tokens: Tokens, tmp_path: Path) -> AsyncIterator[FakeChatd]:
    async with fake_chatd(tokens, f"unix:{tmp_path}/chatd.sock") as running:
        yield running


@pytest.fixture
async def parley(tokens: Tokens, chatd: FakeChatd) -> AsyncIterator[Parley]:
    async with connect(chatd.address, token=tokens.issue()) as client:
        yield client
