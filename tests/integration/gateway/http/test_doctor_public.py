"""`parley doctor --public` names each thing that is wrong, with the real nginx in front."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.http.limits.client_address import ProxyNetwork
from parley.cli.host.public_checks import Installation, check_public
from parley.cli.invocation import Invocation
from parley.cli.main import run
from parley.clock import FakeClock, SystemClock
from support.gateway.stack import gateway_stack
from support.host.ports import free_port
from support.net.nginx import Nginx, nginx_program, running_nginx

TRUSTED = {"trusted_proxies": (ProxyNetwork.parse("127.0.0.0/8"),)}
BUFFERING = "proxy_buffering on; proxy_ignore_headers X-Accel-Buffering;"
COOKIES = "proxy_http_version 1.1; proxy_cookie_flags ~ nosecure nohttponly;"
NO_HSTS = "proxy_http_version 1.1; proxy_hide_header Strict-Transport-Security;"
#: Clients name no host in the handshake if it is an address.
ANY_NAME = {
    "ssl http2 default_server;": "ssl http2;",
    "ssl http2;\n    server_name": "ssl http2 default_server;\n    server_name",
}


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that is wrong, and the finding that names it."""

    wrong: str
    says: str
    settings: Mapping[str, Any] = field(default_factory=lambda: TRUSTED)
    changes: Mapping[str, str] = field(default_factory=dict)
    host: str = "localhost"
    public_host: str = ""
    lifetime: timedelta = timedelta(days=90)
    skew: timedelta = timedelta()
    is_authority_known: bool = True


CASES = (
    Case("trusted proxy", "GATEWAY_TRUSTED_PROXIES", settings={}),
    Case("trusted proxy", "X-Forwarded-Proto", changes={"X-Forwarded-Proto $scheme": "X-None a"}),
    Case(
        "host",
        "GATEWAY_ALLOWED_HOSTS",
        host="127.0.0.2",
        public_host="parley.test",
        changes=ANY_NAME,
    ),
    Case("event streams", "buffering", changes={"proxy_buffering off;": BUFFERING}),
    Case("cookies", "changes cookies", changes={"proxy_http_version 1.1;": COOKIES}),
    Case("HSTS", "begin without TLS", changes={"proxy_http_version 1.1;": NO_HSTS}),
    Case("clock", "NTP", skew=timedelta(seconds=60)),
    Case("certificate", "renewed", lifetime=timedelta(days=5)),
    Case("certificate", "renew or replace", is_authority_known=False),
    Case("WebSockets", "Upgrade", changes={"Upgrade $http_upgrade": 'Upgrade ""'}),
    Case("client address", "X-Forwarded-For", changes={"X-Forwarded-For $remote_addr": "X-None a"}),
    Case("HTTP/2", "six streams", changes={"ssl http2": "ssl"}),
)


@asynccontextmanager
async def checked(
    case: Case, directory: Path, database_url: str
) -> AsyncIterator[tuple[Nginx, Installation]]:
    nginx_program()
    port, clock = free_port(), FakeClock(SystemClock().now())
    public = f"https://{case.public_host or case.host}:{port}"
    async with gateway_stack(
        directory, database_url, public_url=public, clock=clock, **case.settings
    ) as stack:
        front = running_nginx(
            directory / "nginx",
            f"127.0.0.1:{stack.gateway.http.port}",
            port=port,
            host=case.host,
            lifetime=case.lifetime,
            changes=case.changes,
        )
        (directory / "nginx").mkdir()
        # The gateway runs in this thread.
        nginx = await asyncio.to_thread(front.__enter__)
        try:
            authority = str(nginx.authority_file) if case.is_authority_known else None
            yield (
                nginx,
                Installation(
                    nginx.url,
                    authority,
                    lambda: clock.now() + case.skew,
                    stack.owner_key.reveal(),
                ),
            )
        finally:
            await asyncio.to_thread(front.__exit__, None, None, None)


async def test_nothing_is_wrong_with_the_configuration_of_this_repository(
    tmp_path: Path, identity_database: str
) -> None:
    async with checked(Case("", ""), tmp_path, identity_database) as (_, installation):
        findings = await asyncio.to_thread(check_public, installation)
    assert [finding for finding in findings if not finding.is_there] == []
    assert {finding.name for finding in findings} >= {case.wrong for case in CASES} | {"public URL"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.wrong}: {case.says}")
async def test_each_thing_that_is_wrong_is_named_alone(
    tmp_path: Path, identity_database: str, case: Case
) -> None:
    async with checked(case, tmp_path, identity_database) as (_, installation):
        findings = await asyncio.to_thread(check_public, installation)
    (wrong,) = (finding for finding in findings if not finding.is_there)
    assert (wrong.name, case.says in wrong.cost) == (case.wrong, True), wrong


async def test_an_installation_without_tls_is_named_and_gets_no_key(
    tmp_path: Path, identity_database: str
) -> None:
    async with gateway_stack(tmp_path, identity_database) as stack:
        url = f"http://127.0.0.1:{stack.gateway.http.port}"
        installation = Installation(url, None, stack.clock.now, stack.owner_key.reveal())
        findings = await asyncio.to_thread(check_public, installation)
    wrong = {finding.name: finding.detail for finding in findings if not finding.is_there}
    assert wrong["public URL"] == f"{url} is not https"
    assert {"HSTS", "cookies", "trusted proxy"} <= set(wrong)
    assert wrong["certificate"] == "none, because the URL is http"
    assert wrong["trusted proxy"] == "the gateway gets no scheme of the client's request from it"
    assert "event streams" not in {finding.name for finding in findings}


async def test_a_url_where_nothing_answers_is_named(tmp_path: Path) -> None:
    url = f"https://127.0.0.1:{free_port()}"
    findings = check_public(Installation(url, None, SystemClock().now))
    assert [finding.name for finding in findings if not finding.is_there] == ["certificate"]


async def test_the_command_shows_all_findings_and_fails_if_something_is_wrong(
    tmp_path: Path, identity_database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    async with checked(Case("", "", settings={}), tmp_path, identity_database) as (nginx, _):
        environment = {"SSL_CERT_FILE": str(nginx.authority_file)}
        words = ["doctor", "--public", "--url", nginx.url, "--home", str(home)]
        code = await asyncio.to_thread(run, words, Invocation(environment, "parley"))
    shown = capsys.readouterr()
    assert code == 2
    assert f"✓ public URL       {nginx.url}" in shown.out
    assert "✗ trusted proxy    the headers of 127.0.0.1 are ignored" in shown.out
    assert shown.out.count("GATEWAY_TRUSTED_PROXIES") == 1
    assert shown.err == "parley: not ready: trusted proxy; the lines with ✗ say what to do\n"


def test_a_home_without_a_public_url_is_asked_for_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["doctor", "--public", "--home", str(tmp_path)], Invocation({}, "parley")) == 2
    assert "name one with --url" in capsys.readouterr().err
    words = ["doctor", "--url", "https://a.example", "--home", str(tmp_path)]
    assert run(words, Invocation({}, "parley")) == 2
    assert "--url is for --public" in capsys.readouterr().err
