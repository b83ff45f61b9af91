"""Ways past the proxy (row E13), tried by a program inside a sandboxed workspace of a real node."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from parley.api.workspace.v1 import sandbox_pb2, secret_pb2, workspace_pb2
from support.toolrunner.egress_attacks import Scene, attempts
from support.toolrunner.egress_stage import Certificates, Origin
from support.toolrunner.fake_node_registry import FakeNodeRegistry, node_registry
from support.toolrunner.hosted_workspaces import Placer, scratch
from support.toolrunner.node import Client, House, connected, node

OUTSIDE = "127.0.0.2"
DENIED = "127.0.0.3"
VALUE = b"the-secret-that-must-not-leave"
WITHIN_MS = 120_000

#: Runs inside; what it prints is all that gets out.
ATTACKER = r"""
import base64, json, os, socket, sys
from urllib.parse import urlsplit

proxy = urlsplit(os.environ["HTTP_PROXY"])
token = proxy.password or ""
code = base64.b64encode(f"{proxy.username}:{token}".encode()).decode()
auth = f"Proxy-Authorization: Basic {code}\r\n".encode() if token else b""
base = f"/~{token}".encode() if token else b""
given = json.load(open("attempts.json"))

def said(text):
    return base64.b64decode(text).replace(b"{AUTH}", auth).replace(b"{BASE}", base)

def attempt(first, then):
    answer = b""
    try:
        with socket.create_connection((proxy.hostname, proxy.port), 20) as line:
            line.sendall(said(first))
            if then:
                answer = line.recv(4096)
                if answer.startswith(b"HTTP/1.1 200 Connection established"):
                    line.sendall(said(then))
            line.shutdown(socket.SHUT_WR)
            while piece := line.recv(65536):
                answer += piece
    except OSError:
        pass
    return answer[:2000].decode("latin-1")

def reached(host, port):
    try:
        socket.create_connection((host, port), 2).close()
    except OSError:
        return False
    return True

json.dump({
    "answers": [attempt(*each) for each in given["attempts"]],
    "reached": [place for place in given["direct"] if reached(*place)],
}, sys.stdout)
"""


@dataclass(slots=True)
class Around:
    """The servers around a node, and what may be asked of them."""

    registry: FakeNodeRegistry
    secured: Origin = field(default_factory=Origin)
    plain: Origin = field(default_factory=Origin)
    inside: Origin = field(default_factory=Origin)
    denied: Origin = field(default_factory=Origin)

    @property
    def scene(self) -> Scene:
        return Scene(
            secured=f"localhost:{self.secured.port}",
            plain=f"{OUTSIDE}:{self.plain.port}",
            denied=DENIED,
            inside_port=self.inside.port,
            ports=(80, self.denied.port),
        )

    @property
    def direct(self) -> list[tuple[str, int]]:
        """Places that a workspace reaches only if it goes past the proxy."""
        ports = [each.port for each in (self.secured, self.plain, self.inside, self.denied)]
        return [
            (host, port) for host in ("127.0.0.1", OUTSIDE, DENIED, "localhost") for port in ports
        ]


@asynccontextmanager
async def around(house: House) -> AsyncIterator[Around]:
    """Have servers, and a node that knows two of them as services of its own network."""
    certificates = Certificates.for_names(house.directory, "localhost")
    async with AsyncExitStack() as stack:
        registry, address = await stack.enter_async_context(node_registry(house.directory))
        registry.secrets["api"] = VALUE
        found = Around(registry)
        await stack.enter_async_context(found.secured.running(certificates.server))
        await stack.enter_async_context(found.plain.running(host=OUTSIDE))
        await stack.enter_async_context(found.inside.running())
        await stack.enter_async_context(found.denied.running(host=DENIED))
        opened = f"localhost:{found.secured.port},{OUTSIDE}:{found.plain.port}"
        house.settings["TOOLRUNNER_CHATD"] = str(address)
        house.settings["TOOLRUNNER_EGRESS_PRIVATE_HOSTS"] = opened
        house.settings["TOOLRUNNER_EGRESS_AUTHORITIES_FILE"] = str(
            house.directory / "authority.pem"
        )
        yield found


async def entered(
    client: Client,
    house: House,
    found: Around,
    access: "sandbox_pb2.NetworkAccess.ValueType" = sandbox_pb2.NETWORK_ACCESS_PROXY,
) -> Path:
    """Enter a workspace that may reach two servers, and is let at the others by name alone."""
    placer = Placer(client, Path(house.data))
    spec = scratch()
    spec.network.access = access
    spec.network.allowed_hosts.extend(
        (
            *(found.scene.secured, found.scene.plain),
            *(f"{host}:{found.inside.port}" for host in ("localhost", "127.0.0.1")),
        )
    )
    spec.secrets.append(
        secret_pb2.SecretGrant(
            name="api", delivery=secret_pb2.SECRET_DELIVERY_PROXY, hosts=[found.scene.secured]
        )
    )
    workspace_id = await placer.ready(spec)
    placer.enter(workspace_id)
    root = placer.root(workspace_id)
    given = {
        "attempts": [
            (base64.b64encode(each.said).decode(), base64.b64encode(each.then).decode())
            for each in attempts(found.scene)
        ],
        "direct": found.direct,
    }
    (root / "attempts.json").write_text(json.dumps(given))
    (root / "attempts.json").chmod(0o644)
    await found.registry.until(lambda: bool(found.registry.heartbeats))
    return root


@pytest.mark.parametrize("level", ["ns", "landlock"])
async def test_e13_no_way_leads_past_the_proxy_from_inside_a_workspace(
    house: House, level: str
) -> None:
    house.settings["TOOLRUNNER_SANDBOX_LEVEL"] = level
    async with around(house) as found, node(house), connected(house) as client:
        root = await entered(client, house, found)
        used = (await client.run("true")).process.sandbox.level
        if used != sandbox_pb2.SandboxLevel.Value(f"SANDBOX_LEVEL_{level.upper()}"):
            pytest.skip(f"this machine does not offer level {level}")
        # Without these, a proxy that lets nothing through would stand every attack.
        plain = await client.run(f"curl -sS -m 20 http://{found.scene.plain}/allowed")
        secured = await client.run(f'curl -sS -m 20 "$PARLEY_EGRESS/https/{found.scene.secured}/"')
        assert plain.output.text.startswith("GET /allowed HTTP/1.1")
        assert f"Authorization: Bearer {'*' * len(VALUE)}" in secured.output.text
        assert VALUE in found.secured.requests.pop()
        found.plain.requests.clear()

        attacker = "python3 - <<'END' > told.json\n" + ATTACKER + "\nEND"
        started = await client.start(attacker)
        ended = await client.wait(started.process.process_id, max_wait_ms=WITHIN_MS)
        assert ended.process.exit.exit_code == 0, ended.output.text
        told = json.loads((root / "told.json").read_text())

    tried = [each.name for each in attempts(found.scene)]
    assert len(told["answers"]) == len(tried)
    succeeded = [
        name
        for name, answer in zip(tried, told["answers"], strict=True)
        if answer.startswith("HTTP/1.1 200 OK") or VALUE.decode() in answer
    ]
    own = f"Host: {found.scene.plain}\r\n".encode()
    succeeded += [str(each) for each in found.plain.requests if own not in each]
    succeeded += [str(each) for each in found.secured.requests]
    succeeded += [f"past the proxy to {host_port}" for host_port in told["reached"]]
    reached = found.inside.connections + found.denied.connections
    count = len(tried) + len(found.direct)
    print(f"E13 inside, level {level}: attempts {count}, successes {len(succeeded) + reached}")
    assert (succeeded, reached) == ([], 0)


@pytest.mark.parametrize("level", ["ns", "landlock"])
async def test_a_workspace_with_an_open_network_is_led_to_its_secrets_alone(
    house: House, level: str
) -> None:
    house.settings["TOOLRUNNER_SANDBOX_LEVEL"] = level
    async with around(house) as found, node(house), connected(house) as client:
        await entered(client, house, found, sandbox_pb2.NETWORK_ACCESS_OPEN)
        past = await client.run(f"echo ${{HTTP_PROXY-none}}; curl -sS http://{found.scene.plain}/")
        secured = await client.run(f'curl -sS -m 20 "$PARLEY_EGRESS/https/{found.scene.secured}/"')

    assert past.output.text.startswith("none\nGET / HTTP/1.1\r\n")
    assert f"Authorization: Bearer {'*' * len(VALUE)}" in secured.output.text
    assert VALUE in found.secured.requests[0]


@pytest.mark.parametrize("level", ["uid", "none"])
async def test_a_level_that_cannot_keep_a_workspace_to_its_proxy_runs_nothing(
    house: House, level: str
) -> None:
    house.settings["TOOLRUNNER_SANDBOX_LEVEL"] = level
    house.settings["TOOLRUNNER_SANDBOX_MINIMUM"] = "none"
    async with node(house), connected(house) as client:
        spec = scratch("touch ran")
        spec.network.access = sandbox_pb2.NETWORK_ACCESS_PROXY
        placer = Placer(client, Path(house.data))
        workspace_id = placer.new_id()
        async with asyncio.timeout(60):
            prepared = await placer.prepare(workspace_id, spec)

    assert prepared.end.failed.kind == workspace_pb2.WORKSPACE_FAILURE_KIND_SANDBOX
    assert not (placer.root(workspace_id) / "ran").exists()
