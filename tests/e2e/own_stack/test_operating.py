"""What an operator asks of `parley up`: metrics of every process, and a public URL."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.host.ports import free_port
from support.net.http_client import HttpClient
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

PUBLIC_URL = "https://chat.example.org"


@pytest.fixture
def unstarted(tmp_path: Path) -> Iterator[LocalStack]:
    """Give a stack of the test's own whose environment asks for metrics."""
    stack = LocalStack.at(
        tmp_path / "home",
        PARLEY_METRICS_LISTEN=f"127.0.0.1:{free_port()}",
        GATEWAY_PUBLIC_URL=PUBLIC_URL,
    )
    yield stack
    assert stack.parley("down").returncode == 0


async def test_every_process_has_metrics_and_links_are_those_of_the_public_url(
    unstarted: LocalStack,
) -> None:
    stack = unstarted
    started = stack.up("--chatd", "2")
    assert started.returncode == 0, started.stderr

    endpoints = stack.endpoints()
    listed = [url for urls in endpoints["metrics"].values() for url in urls]
    counts = {service: len(urls) for service, urls in endpoints["metrics"].items()}
    assert counts == {"toolrunner": 1, "mcpgateway": 1, "chatd": 2, "gateway": 1}
    for url in listed:
        metrics = await HttpClient(urlsplit(url).port or 0).request("GET", "/metrics")
        assert (metrics.status, b"# TYPE" in metrics.body) == (200, True)
    status = stack.status()
    told = [process["metrics"] for process in status["processes"] if process["metrics"]]
    assert sorted(told) == sorted(listed)
    assert all(url in stack.parley("status").stdout for url in listed)

    assert (status["public_url"], endpoints["public_url"]) == (PUBLIC_URL, PUBLIC_URL)
    assert endpoints["http"] == f"http://{stack.http}"
    link = re.search(rf"{PUBLIC_URL}(/login\?token=[\w-]{{43}})\n", started.stdout)
    assert link is not None
    client = HttpClient(int(stack.http.rpartition(":")[2]), {"Host": "chat.example.org"})
    login = await client.request("GET", link[1])
    assert login.status == 303
    assert login.headers["set-cookie"].startswith("__Host-parley_session=")
    assert login.headers["set-cookie"].endswith("; Secure")
    assert stack.parley("run", "hello").returncode == 0
