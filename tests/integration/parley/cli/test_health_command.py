import socket
from collections.abc import Iterator

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import Answer, fake_api


def health(*arguments: str) -> int:
    return run(["health", *arguments], Invocation({"HOME": "/"}, "parley"))


@pytest.fixture
def listening() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"tcp:127.0.0.1:{server.getsockname()[1]}"


def test_a_listener_is_well_where_accepting_is_enough(
    listening: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert health(listening, "--accepts") == 0
    assert capsys.readouterr().out == f"{listening} is well\n"


@pytest.mark.parametrize(
    "target", ["tcp:127.0.0.1:1", "http://127.0.0.1:1/healthz", "http://127.0.0.1:1"]
)
def test_who_does_not_answer_is_not_well(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert health(target) == 1
    expected = f"parley: {target} is not well: no connection: Connection refused\n"
    assert capsys.readouterr().err == expected


def test_a_url_without_a_path_is_asked_for_its_health(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(Answer(200, {}), Answer(200, {}), Answer(503, {})) as api:
        assert health(api.server.url, f"{api.server.url}/readyz") == 0
        assert health(f"{api.server.url}/readyz") == 1
    assert [each.path for each in api.requests] == ["/healthz", "/readyz", "/readyz"]
    reason = "GET /readyz is answered 503 Service Unavailable"
    assert capsys.readouterr().err == (f"parley: {api.server.url}/readyz is not well: {reason}\n")


def test_one_of_several_that_is_not_well_is_enough(listening: str) -> None:
    assert health(listening, "tcp:127.0.0.1:1", "--accepts") == 1


def test_tls_needs_a_service_and_a_certificate(capsys: pytest.CaptureFixture[str]) -> None:
    assert health("tls:127.0.0.1:1") == 2
    assert "needs --service NAME and --tls DIR" in capsys.readouterr().err
    assert health("tls:127.0.0.1:1", "--service", "chatd", "--tls", "/nowhere") == 2
    assert "/nowhere" in capsys.readouterr().err
