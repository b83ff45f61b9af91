from pathlib import Path

import pytest

from support.rpc.guarded_house import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)
