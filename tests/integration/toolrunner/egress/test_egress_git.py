"""A private repository, cloned and pushed to by a git that never has the password."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.net.git_http import GitServer, has_http_backend, processes_with
from support.toolrunner.egress_stage import PATIENCE_S, Stage, staged
from toolrunner.egress import Delivery, Grant, HostPattern, SecretValue, variables_of

PASSWORD = "ghp_password-of-the-owner-0123456789"
GRANT = Grant("deploy", (HostPattern.parse("secure.example"),), Delivery.GIT)
ADDRESS = "https://secure.example/team/private.git"
PERSON = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}


pytestmark = pytest.mark.skipif(not has_http_backend(), reason="git has no http-backend here")


@dataclass
class Workspace:
    """The inside: a directory and what its processes are told."""

    stage: Stage
    server: GitServer
    files: Path
    variables: Mapping[str, str]

    async def git(self, *words: str, at: str = ".") -> tuple[int, str]:
        program = await asyncio.create_subprocess_exec(
            "git",
            *words,
            cwd=self.files / at,
            env={**PERSON, "HOME": str(self.files), **self.variables},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(PATIENCE_S * 3):
            output, _ = await program.communicate()
        assert program.returncode is not None
        return program.returncode, output.decode()

    def holds_the_password(self) -> list[str]:
        found = [
            str(path)
            for path in self.files.rglob("*")
            if path.is_file() and PASSWORD.encode() in path.read_bytes()
        ]
        return found + [name for name, value in self.variables.items() if PASSWORD in value]


@asynccontextmanager
async def workspace(
    directory: Path, shape: str, *, grants: tuple[Grant, ...] = (GRANT,)
) -> AsyncIterator[Workspace]:
    """Have a workspace that goes out by a port, or by the listener of its own network."""
    values = {"deploy": SecretValue("", PASSWORD.encode())}
    served = _served(directory)
    server = GitServer(served, "x-access-token", PASSWORD)
    async with staged(directory, grants=grants, values=values) as stage:
        stage.secured.handler = server.serve
        files = directory / "files"
        files.mkdir()
        port, token = (
            (stage.endpoint.port, stage.endpoint.token)
            if shape == "port"
            else (stage.namespace_port, "")
        )
        variables = variables_of(grants, port=port, token=token)
        yield Workspace(stage, server, files, variables)


def _served(directory: Path) -> Path:
    where = directory / "served" / "team" / "private.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(where)], check=True)
    return directory / "served"


@pytest.mark.parametrize("shape", ["port", "namespace"])
async def test_a_private_repository_is_cloned_and_pushed_to_without_the_password(
    tmp_path: Path, shape: str
) -> None:
    async with workspace(tmp_path, shape) as inside:
        cloned = await inside.git("clone", "--quiet", ADDRESS, "copy")
        (inside.files / "copy" / "file.txt").write_bytes(b"x" * 3 * 1024**2)
        await inside.git("add", ".", at="copy")
        await inside.git("commit", "--quiet", "-m", "More", at="copy")
        pushed = await inside.git("push", "--quiet", "origin", "HEAD:main", at="copy")
        again = await inside.git("clone", "--quiet", "-b", "main", ADDRESS, "again")
        found = inside.holds_the_password()
        exposed = inside.server.exposed + processes_with(PASSWORD.encode())
        used = {use.purpose for use in inside.stage.secrets.uses}

    assert (cloned[0], pushed, again[0]) == (0, (0, ""), 0), (cloned, pushed, again)
    assert (inside.files / "again" / "file.txt").stat().st_size == 3 * 1024**2
    assert inside.server.refused == []
    assert len(inside.server.served) >= 6
    assert found == []
    assert exposed == []
    assert "POST /team/private.git/git-receive-pack" in used
    print(f"{shape}: {len(inside.server.served)} requests with the password, seen inside: 0")


async def test_git_without_a_grant_is_told_whom_to_ask(tmp_path: Path) -> None:
    async with workspace(tmp_path, "port", grants=()) as inside:
        base = inside.variables["PARLEY_EGRESS"]
        code, output = await inside.git(
            "ls-remote", f"{base}/https/secure.example/team/private.git"
        )

    assert code != 0
    assert "No secret for secure.example:443 is granted to this workspace" in output
    assert "parley secret grant" in output
    assert inside.server.served == []


async def test_git_that_speaks_tls_itself_is_told_by_the_credential_helper(tmp_path: Path) -> None:
    async with workspace(tmp_path, "port", grants=()) as inside:
        authority = f"http.sslCAInfo={tmp_path / 'authority.pem'}"
        code, output = await inside.git("-c", authority, "ls-remote", ADDRESS)

    assert code != 0
    assert "parley: secure.example wants a password." in output
    assert "'parley secret put NAME --host secure.example --delivery git'" in output
    assert "$PARLEY_EGRESS/https/secure.example/..." in output
    assert inside.server.served == []


async def test_git_to_a_host_that_is_not_allowed_prints_the_refusal(tmp_path: Path) -> None:
    grant = Grant("deploy", (HostPattern.parse("elsewhere.example"),), Delivery.GIT)
    async with workspace(tmp_path, "port", grants=(grant,)) as inside:
        code, output = await inside.git("ls-remote", "git@elsewhere.example:team/private.git")

    assert code != 0
    assert "elsewhere.example:443 is not allowed to this workspace" in output
