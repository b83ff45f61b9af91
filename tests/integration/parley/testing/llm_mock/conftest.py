from collections.abc import AsyncIterator

import pytest

from parley.clock import FakeClock
from parley.testing.llm_mock import MockModels


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def server(clock: FakeClock) -> AsyncIterator[MockModels]:
    async with MockModels.serving(clock=clock, seed=7) as serving:
        yield serving
