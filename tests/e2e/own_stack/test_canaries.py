"""Every kind of secret is made and used in a real stack, and then looked for everywhere.

Logs of all services, traces, a dump of the database, files outside of the keys, what other users
are answered, and exports: none has a secret in clear text.
"""

import asyncio
import base64
import io
import json
import secrets
import subprocess
import urllib.parse
import zipfile
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceResponse,
)

from gateway.identity.engine.totp import code_at, step_at
from parley.clock import SystemClock
from parley.postgres.binaries import installed_binaries
from parley.secrets import Keyring
from parley.testing.llm_mock import MockModels
from support.host.ports import free_port
from support.mcpgateway.authorization_server import fake_authorization_server
from support.mcpgateway.servers import everything_process, until_listening
from support.net.http_client import HttpClient, Reply
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

API = "/api/v1"
SOON_S = 120
STREAM_S = 1.0
PASSWORD = "canary nine ladders green 5f3a"
#: What a scan looks for of a secret: as it is, and as bytes are written in dumps and URLs.
SERVICES = ("GATEWAY", "CHATD", "TOOLRUNNER", "MCPGATEWAY")


def canary(kind: str) -> str:
    """Return a value that no other has, with nothing by which a redactor knows its format."""
    return f"{kind.replace(' ', '-')}-canary-{secrets.token_hex(12)}"


@dataclass
class Made:
    """The secrets that the test made, by their kind."""

    values: dict[str, str] = field(default_factory=dict)

    def keep(self, kind: str, value: str) -> str:
        """Note a secret and return it."""
        assert len(value) >= 8, kind
        self.values[kind] = value
        return value

    def found_in(self, content: bytes) -> list[str]:
        """Return the kinds whose value is in the content, in any of its spellings."""
        return [kind for kind, value in self.values.items() if any(
            each in content for each in spellings(value)
        )]  # fmt: skip


def spellings(value: str) -> Iterator[bytes]:
    """Yield how a value may be written."""
    data = value.encode()
    yield data
    yield data.hex().encode()
    yield base64.b64encode(data).rstrip(b"=")[:-2]
    yield urllib.parse.quote(value, safe="").encode()
    yield json.dumps(value)[1:-1].encode()


class Person:
    """A client with an API key, a session, or nothing."""

    def __init__(self, stack: LocalStack, headers: dict[str, str]) -> None:
        self.client = HttpClient(int(stack.http.rpartition(":")[2]), headers)
        self.cookie = headers.get("Cookie", "")

    async def reply(self, method: str, path: str, body: Any = None) -> Reply:
        """Make a request that must succeed."""
        reply = await self.client.request(method, f"{API}{path}", body)
        assert reply.status < 300, (method, path, reply.body)
        return reply

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Make a request that must succeed; return its document."""
        reply = await self.reply(method, path, body)
        return reply.json() if reply.body else None


@contextmanager
def collector() -> Iterator[tuple[list[bytes], str]]:
    """Take traces and metrics of all services."""
    taken: list[bytes] = []

    def handler(response: Any) -> Any:
        def export(sent: bytes, context: grpc.ServicerContext) -> Any:
            taken.append(sent)
            return response()

        return grpc.unary_unary_rpc_method_handler(
            export, response_serializer=response.SerializeToString
        )

    server = grpc.server(ThreadPoolExecutor(2))
    package = "opentelemetry.proto.collector"
    for name, response in (
        ("trace.v1.TraceService", ExportTraceServiceResponse),
        ("metrics.v1.MetricsService", ExportMetricsServiceResponse),
    ):
        handlers = {"Export": handler(response)}
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(f"{package}.{name}", handlers),)
        )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield taken, f"http://127.0.0.1:{port}"
    finally:
        server.stop(1).wait()


@asynccontextmanager
async def running(home: Path, made: Made, otlp: str) -> AsyncIterator[LocalStack]:
    """Run a stack whose model, hooks and MCP servers may be on this machine."""
    async with MockModels.serving(clock=SystemClock(), behaviour="text=done") as mock:
        local = "127.0.0.0/8"
        stack = LocalStack.at(
            home,
            OPENAI_BASE_URL=f"{mock.url}/v1",
            OPENAI_API_KEY=made.keep("provider key of the environment", canary("environment")),
            CHATD_ALLOWED_HOSTS=local,
            MCPGATEWAY_ALLOWED_HOSTS=local,
            **{f"{service}_OTLP_ENDPOINT": otlp for service in SERVICES},
        )
        started = await asyncio.to_thread(stack.up)
        try:
            assert started.returncode == 0, started.stdout + started.stderr
            yield stack
        finally:
            await asyncio.to_thread(stack.parley, "down")


async def signed_in(stack: LocalStack, owner: Person, made: Made) -> Person:
    """Invite a person who sets a password, signs in with it, and adds an authenticator app."""
    user = await owner.ask("POST", "/users", {"login": "ada", "role": "member"})
    path = f"/users/{user['id']}/sign-in-links"
    invitation = await owner.ask("POST", path, {"purpose": "invitation"})
    token = made.keep("invitation", _token(invitation["url"]))
    made.keep("password", PASSWORD)
    nobody = Person(stack, {})
    await nobody.reply("POST", "/sign-in/link/password", {"token": token, "password": PASSWORD})
    reply = await nobody.reply("POST", "/sign-in", {"login": "ada", "password": PASSWORD})
    ada = _with_session(stack, reply, made, "session")
    wrong = {"login": "ada", "password": made.keep("wrong password", canary("wrong"))}
    assert (await nobody.client.request("POST", f"{API}/sign-in", wrong)).status == 401
    begun = await ada.ask("POST", "/me/totp", {})
    secret = made.keep("TOTP secret", begun["secret"])
    step = step_at(SystemClock().now().timestamp())
    code = code_at(base64.b32decode(secret + "=" * (-len(secret) % 8)), step)
    confirmed = await ada.ask("POST", "/me/totp/confirm", {"code": code})
    for number, each in enumerate(confirmed["recovery_codes"]):
        made.keep(f"recovery code {number}", each)
    asked = await nobody.ask("POST", "/sign-in", {"login": "ada", "password": PASSWORD})
    made.keep("continuation", asked["continuation"])
    code = confirmed["recovery_codes"][0]
    second = await nobody.reply(
        "POST", "/sign-in/second-factor", {"continuation": asked["continuation"], "code": code}
    )
    reset = await owner.ask("POST", path, {"purpose": "password_reset"})
    made.keep("reset", _token(reset["url"]))
    return _with_session(stack, second, made, "session of a second factor")


def _token(url: str) -> str:
    return urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)["token"][0]


def _with_session(stack: LocalStack, reply: Reply, made: Made, kind: str) -> Person:
    cookies = dict(each.partition(";")[0].split("=", 1) for each in reply.set_cookies)
    (name,) = [each for each in cookies if each.endswith("parley_session")]
    made.keep(kind, cookies[name])
    headers = {
        "Cookie": "; ".join(f"{each}={value}" for each, value in cookies.items()),
        "X-CSRF-Token": made.keep(f"CSRF token of the {kind}", reply.json()["csrf_token"]),
        "Sec-Fetch-Site": "same-origin",
    }
    return Person(stack, headers)


async def use_everything(stack: LocalStack, owner: Person, ada: Person, made: Made) -> None:
    """Make all other secrets, and use those that can be used here."""
    key = await ada.ask("POST", "/me/api-keys", {"name": "laptop"})
    program = Person(stack, {"Authorization": f"Bearer {made.keep('API key', key['key'])}"})
    token = {"name": "program", "scopes": ["chat:read"]}
    issued = await owner.ask("POST", "/service-tokens", token)
    made.keep("service token", issued["token"])
    provider = await owner.ask(
        "POST",
        "/providers",
        {
            "name": "other",
            "type": "openai",
            "base_url": "http://127.0.0.1:18998",
            "user_keys_allowed": True,
        },
    )
    for person, path, kind in (
        (owner, "/provider-keys", "provider key"),
        (ada, "/me/provider-keys", "own provider key"),
    ):
        body = {"provider_id": provider["id"], "key": made.keep(kind, canary(kind))}
        await person.ask("POST", path, body)
    issuer = {
        "display_name": "Corp",
        "issuer": "https://login.corp.example",
        "client_id": "parley",
        "client_secret": made.keep("secret of an issuer", canary("issuer")),
    }
    await owner.ask("PUT", "/oidc-issuers/corp", issuer)
    hook = {"name": "policy", "url": "http://127.0.0.1:18999/", "events": ["stop"]}
    added = await owner.ask("POST", "/hooks", {**hook, "fail_policy": "open"})
    made.keep("hook secret", added["secret"])
    secret = {
        "name": "TOKEN",
        "delivery": "environment",
        "value": made.keep("personal secret", canary("personal")),
    }
    await ada.ask("POST", "/secrets", secret)
    await _use_servers(owner, ada, made)
    await _connect_account(owner, ada, made)
    await _talk(program)
    await _print_secret(ada, await _talk(ada))


async def _talk(person: Person) -> str:
    """Have a chat with one answer; return its id."""
    text = [{"type": "text", "text": "hello"}]
    chat = await person.ask("POST", "/chats", {"content": text})
    async with asyncio.timeout(SOON_S):
        while (await person.ask("GET", f"/chats/{chat['id']}"))["status"] == "running":
            await SystemClock().sleep(0.2)
    return str(chat["id"])


async def _print_secret(person: Person, chat_id: str) -> None:
    """Have a command print the secret that it has as a variable."""
    processes = f"/chats/{chat_id}/processes"
    await person.ask("POST", processes, {"command": "true"})
    await person.ask("PUT", f"/workspaces/{chat_id}/grants", {"secret_names": ["TOKEN"]})
    command = 'test -n "$TOKEN" && env && echo printed'
    started = await person.ask("POST", processes, {"command": command})
    async with asyncio.timeout(SOON_S):
        while True:
            output = await person.ask("GET", f"{processes}/{started['id']}/output?wait=10")
            if output["process"]["state"] != "running":
                break
    assert output["text"].endswith("printed\n"), output
    assert "TOKEN=****" in output["text"]


async def _use_servers(owner: Person, ada: Person, made: Made) -> None:
    """Add MCP servers with a key, headers, a client secret and a value of a user; ask them."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    key = {"api_key": made.keep("MCP key", canary("mcp-key"))}
    headers = {"X-Token": made.keep("MCP header", canary("mcp-header"))}
    servers = (
        {"slug": "keyed", "auth_kind": "api_key", "credentials": key},
        {
            "slug": "headed",
            "auth_kind": "custom_headers",
            "credentials": {"custom_headers": {"headers": headers}},
        },
        {
            "slug": "oauth",
            "auth_kind": "oauth2",
            "oauth": {"client_id": "parley"},
            "credentials": {
                "oauth_client_secret": made.keep("MCP client secret", canary("mcp-client"))
            },
        },
    )
    with everything_process(port):
        await until_listening(port)
        for server in servers:
            added = await owner.ask("POST", "/mcp/servers", {**server, "url": url})
            await owner.client.request("POST", f"{API}/mcp/servers/{added['id']}/probe", {})
        valued = {"slug": "valued", "url": url, "is_enabled": True}
        valued |= {"user_values": [{"header": "X-Own", "description": "Your key."}]}
        path = f"/mcp/servers/{(await owner.ask('POST', '/mcp/servers', valued))['id']}"
        own = made.keep("own value for an MCP server", canary("own-value"))
        await ada.ask("PUT", f"{path}/me/values", {"values": {"X-Own": own}})
        call = {"original_name": "echo", "arguments": {"text": "hello"}}
        assert (await ada.ask("POST", f"{path}/tools/call", call))["outcome"] == "succeeded"


async def _connect_account(owner: Person, ada: Person, made: Made) -> None:
    """Log a person in at an MCP server, use and renew the tokens, and leave a second login open."""
    client = {"oauth_client_secret": made.keep("OAuth client secret", canary("oauth-client"))}
    async with fake_authorization_server() as issuer:
        server = {
            "slug": "guarded",
            "url": issuer.mcp_url,
            "is_enabled": True,
            "auth_kind": "oauth2",
            "oauth": {"client_id": "parley"},
            "credentials": client,
        }
        added = await owner.ask("POST", "/mcp/servers", server)
        call = {"original_name": "whoami", "arguments": {}}
        path = f"/mcp/servers/{added['id']}"
        location, cookie = await _left_for(ada, added["id"])
        way_back = issuer.way_back(location)
        headers = {"Cookie": f"{ada.cookie}; {cookie}"}
        callback = way_back[way_back.index("/mcp/callback") :]
        back = await ada.client.request("GET", callback, None, headers)
        assert back.status == 200, back.body
        assert (await ada.ask("POST", f"{path}/tools/call", call))["outcome"] == "succeeded"
        issuer.expire()
        assert (await ada.ask("POST", f"{path}/tools/call", call))["outcome"] == "succeeded"
        assert len(issuer.refreshes) == 1
        location, other = await _left_for(ada, added["id"])
        issuer.agree(location)
        for each in (cookie, other):
            made.keep(f"binding of an OAuth login {len(made.values)}", each.partition("=")[2])
        for number, each in enumerate(issuer.given):
            made.keep(f"OAuth code or token {number}", each)
        for number, asked in enumerate(issuer.asked):
            made.keep(f"OAuth state {number}", asked["state"])
        (verifier,) = [form["code_verifier"] for form in issuer.forms if "code_verifier" in form]
        made.keep("PKCE verifier", verifier)
        assert len(issuer.given) == 6  # Two codes, two access tokens and two refresh tokens.
        assert made.found_in(back.body) == []


async def _left_for(person: Person, server_id: str) -> tuple[str, str]:
    """Begin a login at an MCP server; return where the browser is sent, and the cookie it gets."""
    left = await person.client.request("GET", f"/mcp/login/{server_id}")
    assert left.status == 303, left.body
    (cookie,) = [each.partition(";")[0] for each in left.set_cookies]
    return left.headers["location"], cookie


def keys_of(stack: LocalStack, made: Made) -> None:
    """Note the secrets that the installation made for itself."""
    home = stack.home
    made.keep("API key of the home", home.api_key_file.read_text().strip())
    login_token = home.keys.joinpath("login_token")
    if login_token.exists():
        made.keep("login link", login_token.read_text().strip())
    for key in Keyring.load(home.master_key_file).keys:
        made.keep("master key", base64.b64encode(key.material).decode())
        made.keep("master key in hexadecimal digits", key.material.hex())


def files_with(made: Made, home: Path) -> dict[str, list[str]]:
    """Return the files outside of the keys that have a secret; the database is dumped instead."""
    found = {}
    for path in home.rglob("*"):
        place = path.relative_to(home)
        if (
            place.parts[0] in ("keys", "api_key", "postgres")
            or not path.is_file()
            or path.is_symlink()
        ):
            continue
        try:
            kinds = made.found_in(path.read_bytes())
        except OSError:
            continue
        if kinds:
            found[str(place)] = kinds
    return found


def dumped(stack: LocalStack) -> bytes:
    """Return a dump of the database as the documents make it."""
    url = stack.endpoints()["database"]
    programs = installed_binaries()
    program = programs[max(programs)] / "pg_dump"
    done = subprocess.run([str(program), "--dbname", url], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def answers_to(person: Person, made: Made) -> dict[str, list[str]]:
    """Return the lists that have a secret, as another person or an administrator sees them."""
    found = {}
    listed = await person.client.request("GET", f"{API}/mcp/servers")
    servers = [each["id"] for each in listed.json()["items"]] if listed.status == 200 else []
    of_servers = [
        f"/mcp/servers/{server_id}{rest}"
        for server_id in servers
        for rest in ("", "/changes", "/login", "/tools", "/resources", "/prompts")
    ]
    for path in (
        *of_servers, "/mcp/calls", "/mcp/logins",
        "/users", "/people", "/providers", "/provider-keys", "/hooks", "/secrets", "/mcp/servers",
        "/oidc-issuers", "/service-tokens", "/me/api-keys", "/me/sessions", "/me/second-factors",
        "/audit-log", "/audit-log/export", "/settings", "/chats", "/configuration", "/models",
    ):  # fmt: skip
        reply = await person.client.request("GET", f"{API}{path}")
        kinds = made.found_in(reply.body)
        if kinds:
            found[path] = kinds
    return found


async def stream_to(person: Person) -> bytes:
    """Return the beginning of the stream of all that a person sees."""
    chats = (await person.ask("GET", "/chats"))["items"]
    shown: list[str] = []
    for path in ("/events", *(f"/chats/{chat['id']}/events" for chat in chats)):
        with suppress(TimeoutError):
            async with asyncio.timeout(STREAM_S), person.client.stream(f"{API}{path}") as stream:
                while (frame := await stream.frame()) is not None:
                    shown.append(frame)
    assert len(shown) > len(chats)
    return "".join(shown).encode()


async def archive_of(person: Person) -> bytes:
    """Return the archive of a person."""
    begun = await person.ask("POST", "/me/exports")
    async with asyncio.timeout(SOON_S):
        while True:
            (export,) = (await person.ask("GET", "/me/exports"))["items"]
            if export["state"] == "complete":
                break
            await SystemClock().sleep(0.5)
    return (await person.reply("GET", f"/me/exports/{begun['id']}/archive")).body


def _in_archive(data: bytes, made: Made) -> dict[str, list[str]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        found = {name: made.found_in(archive.read(name)) for name in archive.namelist()}
    return {name: kinds for name, kinds in found.items() if kinds}


async def test_g8_no_secret_that_was_made_is_found_anywhere(tmp_path: Path) -> None:
    made = Made()
    with collector() as (exported, otlp):
        async with running(tmp_path / "home", made, otlp) as stack:
            owner_key = stack.home.api_key_file.read_text().strip()
            owner = Person(stack, {"Authorization": f"Bearer {owner_key}"})
            ada = await signed_in(stack, owner, made)
            await use_everything(stack, owner, ada, made)
            keys_of(stack, made)
            body = {"login": "eve", "role": "member", "kind": "service"}
            eve_id = (await owner.ask("POST", "/users", body))["id"]
            eve_key = await owner.ask("POST", f"/users/{eve_id}/api-keys", {"name": "eve"})
            eve = Person(stack, {"Authorization": f"Bearer {eve_key['key']}"})
            found: dict[str, Any] = {
                "answers to another user": await answers_to(eve, made),
                "answers to the owner": await answers_to(owner, made),
                "answers to the user": await answers_to(ada, made),
                "answers to nobody": await answers_to(Person(stack, {}), made),
                "streams": made.found_in(await stream_to(ada)),
                "dump": made.found_in(await asyncio.to_thread(dumped, stack)),
                "export": _in_archive(await archive_of(ada), made),
            }
        found["files"] = files_with(made, tmp_path / "home")
    found["traces and metrics"] = made.found_in(b"".join(exported))
    print(f"G8: {len(made.values)} secrets, {len(exported)} exports of traces and metrics")
    assert {place: kinds for place, kinds in found.items() if kinds} == {}
    assert exported
    assert len(made.values) > 35
