"""Limits of agents that an operator can set."""

import pytest

from chatd.settings import AGENTS_DEPTH_LARGEST, Settings
from parley.settings import SettingsError, read

REQUIRED = {
    "CHATD_LISTEN": "unix:/run/chatd.sock",
    "CHATD_TRUST_FILE": "/trust.json",
    "CHATD_SIGNING_KEY_FILE": "/key.pem",
    "CHATD_DATABASE_URL": "postgresql://chatd@/parley",
    "CHATD_MASTER_KEY_FILE": "/master.json",
    "CHATD_GATEWAY": "unix:/run/gateway.sock",
    "CHATD_TOOLRUNNER": "unix:/run/toolrunner.sock",
    "CHATD_MCPGATEWAY": "unix:/run/mcpgateway.sock",
}


def settings(depth_max: int) -> Settings:
    return read(Settings, {**REQUIRED, "CHATD_AGENTS_DEPTH_MAX": str(depth_max)}, prefix="CHATD")


def test_the_levels_of_agents_have_an_upper_bound() -> None:
    assert settings(AGENTS_DEPTH_LARGEST).agents_depth_max == 3
    with pytest.raises(SettingsError, match="CHATD_AGENTS_DEPTH_MAX is more than 3"):
        settings(AGENTS_DEPTH_LARGEST + 1)
