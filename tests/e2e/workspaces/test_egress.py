"""Secrets that a sandboxed workspace uses and never sees, over a whole stack and real servers."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import psutil
import pytest

from parley.clock import SystemClock
from support.net.git_http import GitServer, has_http_backend
from support.net.http_client import HttpClient
from support.net.package_index import PackageIndex
from support.stack.faulty_stack import watching
from support.stack.local_stack import LocalStack
from support.toolrunner.egress_stage import Certificates, Origin

pytestmark = pytest.mark.slow

HOST = "127.0.0.2"
API_TOKEN = "api-token-0123456789"
GIT_TOKEN = "git-token-0123456789"
INDEX_TOKEN = "index-token-0123456789"
VARIABLE = "variable-0123456789"
#: Finds the tokens and not itself.
PATTERN = "[a]pi-token-|[g]it-token-|[i]ndex-token-"
WITHIN_S = 60

#: Prints what of a workspace holds a token: variables, arguments and files of all it can see.
SEARCH = f"""
cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -aE '{PATTERN}'
env | grep -aE '{PATTERN}'
grep -raEl '{PATTERN}' . "$HOME" "$TMPDIR" /tmp /dev/shm /run /var /etc 2>/dev/null
echo searched
"""


@dataclass(slots=True)
class Outside:
    """Servers behind TLS, each of which wants a password of its own."""

    git: GitServer
    api: Origin = field(default_factory=Origin)
    repositories: Origin = field(default_factory=Origin)
    packages: Origin = field(default_factory=Origin)
    index: PackageIndex = field(default_factory=lambda: PackageIndex("reader", INDEX_TOKEN))

    @property
    def places(self) -> tuple[str, str, str]:
        """The API, the repositories and the packages, as hosts with ports."""
        ports = (self.api.port, self.repositories.port, self.packages.port)
        api, repositories, packages = (f"{HOST}:{port}" for port in ports)
        return api, repositories, packages


@asynccontextmanager
async def outside(directory: Path) -> AsyncIterator[Outside]:
    certificates = Certificates.for_names(directory, HOST)
    found = Outside(GitServer(directory / "served", "x-access-token", GIT_TOKEN))
    found.repositories.handler = found.git.serve
    found.packages.handler = found.index.serve
    async with AsyncExitStack() as stack:
        for each in (found.api, found.repositories, found.packages):
            await stack.enter_async_context(each.running(certificates.server, HOST))
        yield found


@dataclass(slots=True)
class Inside:
    """A workspace, used over HTTP by the chat that works in it."""

    client: HttpClient
    chat_id: str
    level: str

    async def run(self, command: str) -> tuple[int, str]:
        """Run a command to its end; return its exit code and what it printed."""
        processes = f"/api/v1/chats/{self.chat_id}/processes"
        started = await asked(self.client, 201, "POST", processes, {"command": command})
        path = f"{processes}/{started['id']}/output?wait=20"
        async with asyncio.timeout(WITHIN_S):
            while True:
                printed = await asked(self.client, 200, "GET", path)
                process = printed["process"]
                if process["state"] != "running":
                    assert process["state"] == "exited", process["start_error"]
                    return process["exit"]["exit_code"], printed["text"]


async def asked(client: HttpClient, status: int, method: str, path: str, body: Any = None) -> Any:
    reply = await client.request(method, path, body)
    assert reply.status == status, (method, path, reply.body)
    return reply.json()


def said(stack: LocalStack, *words: str, value: str = "") -> str:
    """Call `parley` and return what it printed."""
    ended = stack.parley(*words, said=value)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def keep_secrets(stack: LocalStack, found: Outside) -> None:
    api, repositories, packages = found.places
    put = ("secret", "put")
    said(stack, *put, "api", "--host", api, value=API_TOKEN)
    said(stack, *put, "deploy", "--host", repositories, "--delivery", "git", value=GIT_TOKEN)
    said(stack, *put, "index", "--host", packages, "--username", "reader", value=INDEX_TOKEN)
    said(stack, *put, "plain-key", "--delivery", "environment", value=VARIABLE)


async def ready(client: HttpClient, template: Any, **wanted: Any) -> Any:
    """Make a workspace from a new template."""
    made = await asked(client, 201, "POST", "/api/v1/templates", template)
    wanted = {"template_id": made["id"], **wanted}
    workspace = await asked(client, 202, "POST", "/api/v1/workspaces", wanted)
    async with asyncio.timeout(WITHIN_S):
        while workspace["state"] in ("pending", "preparing"):
            await SystemClock().sleep(0.1)
            workspace = await asked(client, 200, "GET", f"/api/v1/workspaces/{workspace['id']}")
    assert workspace["state"] == "ready", workspace
    return workspace


async def entered(stack: LocalStack, client: HttpClient, found: Outside) -> Inside:
    """Make a workspace that may reach the servers, grant it the secrets, and have a chat in it."""
    template = {
        "name": "guarded",
        "kind": "scratch",
        "scratch": {},
        "network": {"access": "proxy", "allowed_hosts": list(found.places)},
    }
    workspace = await ready(client, template, name="guarded-1")
    granted = await asyncio.to_thread(
        said, stack, "secret", "grant", "guarded-1", "api", "deploy", "index", "plain-key"
    )
    assert granted == "guarded-1 may use api, deploy, index, plain-key.\n"
    content = [{"type": "text", "text": "repeat after me: hello"}]
    body = {"content": content, "workspace_id": workspace["id"]}
    chat = await asked(client, 201, "POST", "/api/v1/chats", body)
    return Inside(client, chat["id"], workspace["sandbox_level"])


@asynccontextmanager
async def stack_beside(found: Outside, directory: Path, level: str) -> AsyncIterator[LocalStack]:
    """Run a stack whose node may let workspaces reach the servers."""
    home = directory / "home"
    home.mkdir()
    stack = LocalStack.at(
        home,
        PARLEY_ENVIRONMENT="development",
        TOOLRUNNER_SANDBOX_LEVEL=level,
        TOOLRUNNER_EGRESS_PRIVATE_HOSTS=",".join(found.places),
        TOOLRUNNER_EGRESS_AUTHORITIES_FILE=str(directory / "authority.pem"),
    )
    # In threads: the servers answer meanwhile.
    await asyncio.to_thread(stack.ensure_up)
    try:
        yield stack
    finally:
        stopped = await asyncio.to_thread(stack.parley, "down")
        assert stopped.returncode == 0, stopped.stderr
        _, left = psutil.wait_procs(stack.strangers(), timeout=5)
        assert left == []


async def pull_request_opened(inside: Inside, found: Outside) -> None:
    path = f"https/{found.places[0]}/repos/team/private/pulls"
    code, text = await inside.run(f"curl -sS -m 20 \"$PARLEY_EGRESS/{path}\" -d '{{}}'")
    assert (code, text.splitlines()[0]) == (0, "POST /repos/team/private/pulls HTTP/1.1")
    # The server repeats what it got, and still nothing is seen of the token.
    assert f"Authorization: Bearer {'*' * len(API_TOKEN)}" in text
    assert f"Authorization: Bearer {API_TOKEN}".encode() in found.api.requests[0]


async def repository_changed(inside: Inside, found: Outside) -> None:
    address = f"https://{found.places[1]}/team/private.git"
    person = "-c user.name=Ada -c user.email=ada@example.org"
    code, text = await inside.run(
        f"git clone -q {address} copy && cd copy && echo one > file && git add file"
        f" && git {person} commit -qm One && git push -q origin HEAD:main"
        f" && cd .. && git clone -q -b main {address} again && cat again/file"
    )
    assert (code, text.splitlines()[-1]) == (0, "one"), text
    assert found.git.refused == []
    assert len(found.git.served) >= 6
    assert found.git.exposed == []


async def package_installed(inside: Inside, found: Outside) -> None:
    if (await inside.run("python3 -m pip --version"))[0] != 0:
        print("pip is not installed where workspaces see it; no package was installed")
        return
    code, text = await inside.run(
        "python3 -m pip install -q --no-cache-dir --no-deps --target lib --trusted-host 127.0.0.1"
        f' --index-url "$PARLEY_EGRESS/https/{found.places[2]}/simple" parley-probe'
        " && PYTHONPATH=lib python3 -c 'import parley_probe; print(parley_probe.WORD)'"
    )
    assert (code, text.splitlines()[-1]) == (0, "installed"), text
    assert found.index.refused == []


async def repository_worked_on_without_network(client: HttpClient, found: Outside) -> None:
    """Make a workspace of the private repository that itself reaches nothing."""
    address = f"https://{found.places[1]}/team/private.git"
    template = {"name": "cloned", "kind": "git", "git": {"url": address}}
    workspace = await ready(client, template, name="cloned-1", secret_names=["deploy"])
    content = [{"type": "text", "text": "repeat after me: hello"}]
    body = {"content": content, "workspace_id": workspace["id"]}
    chat = await asked(client, 201, "POST", "/api/v1/chats", body)
    inside = Inside(client, chat["id"], workspace["sandbox_level"])
    assert await inside.run("cat file; git remote get-url origin") == (0, f"one\n{address}\n")
    assert (await inside.run("git ls-remote origin"))[0] != 0


@pytest.mark.skipif(not has_http_backend(), reason="git has no http-backend here")
@pytest.mark.parametrize("level", ["ns", "landlock"])
async def test_a_sandboxed_workspace_uses_secrets_that_it_never_sees(
    tmp_path_factory: pytest.TempPathFactory, level: str
) -> None:
    directory = tmp_path_factory.mktemp("e")
    repository = directory / "served" / "team" / "private.git"
    await asyncio.to_thread(
        subprocess.run, ["git", "init", "-q", "--bare", "-b", "main", str(repository)], check=True
    )
    async with outside(directory) as found, stack_beside(found, directory, level) as stack:
        await asyncio.to_thread(keep_secrets, stack, found)
        key = stack.home.api_key_file.read_text().strip()
        client = HttpClient(int(stack.http.rpartition(":")[2]), {"Authorization": f"Bearer {key}"})
        inside = await entered(stack, client, found)
        if inside.level != level:
            pytest.skip(f"this machine offers level {inside.level}")
        await pull_request_opened(inside, found)
        await repository_changed(inside, found)
        await package_installed(inside, found)
        await repository_worked_on_without_network(client, found)
        # A command has the value of a variable, and what it prints does not show it.
        assert await inside.run('printf %s "$PLAIN_KEY"') == (0, "*" * len(VARIABLE))
        _, digest = await inside.run('printf %s "$PLAIN_KEY" | sha256sum')
        assert digest.split()[0] == sha256(VARIABLE.encode()).hexdigest()
        assert await inside.run(SEARCH) == (0, "searched\n")
        await asyncio.to_thread(said, stack, "secret", "grant", "guarded-1")
        private = f"https://{found.places[1]}/team/private.git"
        code, text = await inside.run(f"git ls-remote {private} 2>&1")
        assert code != 0, text
        recorded = await uses(stack)

    given = [use for use in recorded if use[3] == "given"]
    print(f"E13 level {level}: {len(given)} uses on record, seen inside: 0")
    api, repositories, _ = found.places
    assert ("api", api, "POST /repos/team/private/pulls", "given") in recorded
    assert ("deploy", repositories, "POST /team/private.git/git-receive-pack", "given") in recorded
    assert {use[0] for use in given} >= {"api", "deploy", "plain-key"}
    assert len([use for use in given if use[0] == "deploy"]) == len(found.git.served)


async def uses(stack: LocalStack) -> list[tuple[str, str, str, str]]:
    """Return the record: secret, host, purpose and outcome."""
    async with watching(stack) as watched:
        rows = await watched.connection.fetch(
            "SELECT secret_name, host, purpose, outcome FROM chat.secret_uses ORDER BY used_at"
        )
    return [tuple(row) for row in rows]
