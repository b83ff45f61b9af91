"""The command `parley`, called in this process against a test's gateway."""

import asyncio
import io
from pathlib import Path

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.gateway.stack import GatewayStack


class Shell:
    """Calls `parley` in a home directory of its own."""

    def __init__(
        self,
        stack: GatewayStack,
        home: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self.url = f"http://127.0.0.1:{stack.gateway.http.port}"
        self.environment = {"HOME": str(home)}
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    async def parley(self, *arguments: str, typed: str = "", **environment: str) -> tuple[int, str]:
        """Call a command and return its exit code and all that it printed."""
        self._monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        self._capsys.readouterr()
        invocation = Invocation({**self.environment, **environment}, "parley")
        code = await asyncio.to_thread(run, arguments, invocation)
        printed = self._capsys.readouterr()
        return code, printed.out + printed.err

    async def as_owner(self, stack: GatewayStack, *arguments: str) -> tuple[int, str]:
        """Call a command with the owner's key."""
        key = stack.owner_key.reveal()
        return await self.parley(*arguments, PARLEY_URL=self.url, PARLEY_API_KEY=key)
