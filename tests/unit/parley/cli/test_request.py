import socket
from pathlib import Path

import pytest

from parley.cli.errors import ConfigurationProblem
from parley.cli.home.credentials import prepare_secrets
from parley.cli.home.layout import Home
from parley.cli.stack.ports import HostPort, any_free_port, free_ports_after, refusal
from parley.cli.stack.request import UpRequest, check_request, choose_ports, restart_pause_max_s
from parley.cli.stack.spec import Sizes
from parley.cli.supervision.startup import prepare


def request(home: Path, **changes: object) -> UpRequest:
    values: dict[str, object] = {
        "home": Home.at(home),
        "http": "127.0.0.1:8787",
        "sizes": Sizes(),
        "database_url": None,
        "environment": {},
    }
    return UpRequest(**(values | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:80", HostPort("127.0.0.1", 80)),
        ("8080", HostPort("127.0.0.1", 8080)),
        (":8080", HostPort("127.0.0.1", 8080)),
        ("[::1]:80", HostPort("::1", 80)),
        ("host.name:1", HostPort("host.name", 1)),
    ],
)
def test_addresses_are_read(text: str, expected: HostPort) -> None:
    assert HostPort.parse(text) == expected


@pytest.mark.parametrize("text", ["", "host", "host:", "host:x", "host:0", "host:65536", "h:-1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationProblem):
        HostPort.parse(text)


def test_an_address_that_means_all_is_opened_on_loopback() -> None:
    assert HostPort("0.0.0.0", 80).url == "http://127.0.0.1:80"
    assert HostPort("::", 80).url == "http://[::1]:80"


@pytest.mark.parametrize(("given", "expected_s"), [("", 10.0), ("0.5", 0.5), (" 600 ", 600.0)])
def test_the_longest_pause_before_a_restart_is_read(given: str, expected_s: float) -> None:
    assert restart_pause_max_s({"PARLEY_RESTART_PAUSE_MAX_S": given}) == expected_s


@pytest.mark.parametrize("given", ["soon", "0", "-1", "601", "nan", "inf", "1,5"])
def test_a_pause_that_is_no_time_is_refused(tmp_path: Path, given: str) -> None:
    environment = {"PARLEY_RESTART_PAUSE_MAX_S": given}
    with pytest.raises(ConfigurationProblem) as caught:
        check_request(request(tmp_path, http="nowhere", environment=environment))
    assert caught.value.problems[0] == (
        f"PARLEY_RESTART_PAUSE_MAX_S is {given}: write seconds from 0.2 to 600"
    )


def test_every_problem_of_a_request_is_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    wrong = request(
        tmp_path / "file",
        http="nowhere",
        database_url="mysql://x",
        environment={"PARLEY_HOEM": "x", "PARLEY_HOME": "y"},
    )
    with pytest.raises(ConfigurationProblem) as caught:
        check_request(wrong)
    assert [problem.partition(" ")[0] for problem in caught.value.problems] == [
        "PARLEY_HOEM",
        "--database",
        str(tmp_path / "file"),
        "--http",
    ]
    assert "did you mean PARLEY_HOME?" in caught.value.problems[0]


def test_settings_keys_and_ports_that_are_wrong_are_reported_at_once(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    home.prepare()
    prepare_secrets(home)
    home.api_key_file.write_text("pk_secret")
    home.master_key_file.write_text("damaged")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        http = f"127.0.0.1:{taken.getsockname()[1]}"
        environment = {"PARLEY_HOEM": "x", "CHATD_LISTEN": "y"}
        wrong = request(tmp_path, http=http, environment=environment)
        check_request(wrong)
        with pytest.raises(ConfigurationProblem) as caught:
            prepare(wrong)
    named = ("PARLEY_HOEM", str(home.master_key_file), str(home.api_key_file), http, "CHATD_LISTEN")
    assert len(caught.value.problems) == len(named)
    assert all(name in problem for name, problem in zip(named, caught.value.problems, strict=True))
    assert "secret" not in str(caught.value)


def test_a_port_in_use_is_refused_with_the_option_to_change(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        http = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ConfigurationProblem, match="--http"):
            choose_ports(request(tmp_path, http=http))


def test_further_gateways_get_the_next_free_ports(tmp_path: Path) -> None:
    first = any_free_port("127.0.0.1")
    ports = choose_ports(request(tmp_path, http=str(first), sizes=Sizes(gateway=3)))
    assert ports.http[0] == first
    assert len({*ports.http, ports.mcp_demo}) == 4
    assert all(other.port > first.port for other in ports.http[1:])


def test_ports_that_are_taken_are_skipped() -> None:
    first = any_free_port("127.0.0.1")
    next_one = free_ports_after(first, 1)[0]
    with socket.create_server((next_one.host, next_one.port)):
        assert refusal(next_one) is not None
        assert free_ports_after(first, 1)[0].port > next_one.port


def test_each_replica_gets_a_metrics_address_of_its_own(tmp_path: Path) -> None:
    http, metrics = any_free_port("127.0.0.1"), any_free_port("127.0.0.1")
    asked = request(
        tmp_path,
        http=str(http),
        sizes=Sizes(chatd=3),
        environment={"CHATD_METRICS_LISTEN": str(metrics)},
    )
    ports = choose_ports(asked)
    assert list(ports.metrics) == ["chatd"]
    assert ports.metrics["chatd"][0] == metrics
    assert len({*ports.metrics["chatd"], *ports.http, ports.mcp_demo}) == 5


def test_one_variable_gives_every_process_metrics_at_its_own_address(tmp_path: Path) -> None:
    http, first = any_free_port("127.0.0.1"), any_free_port("127.0.0.1")
    own = any_free_port("127.0.0.1")
    asked = request(
        tmp_path,
        http=str(http),
        sizes=Sizes(chatd=2, toolrunner=2),
        environment={"PARLEY_METRICS_LISTEN": str(first), "GATEWAY_METRICS_LISTEN": str(own)},
    )
    metrics = choose_ports(asked).metrics
    assert {service: len(addresses) for service, addresses in metrics.items()} == {
        "toolrunner": 2,
        "mcpgateway": 1,
        "chatd": 2,
        "gateway": 1,
    }
    assert (metrics["toolrunner"][0], metrics["gateway"]) == (first, (own,))
    assert len({each for addresses in metrics.values() for each in addresses}) == 6


def test_any_free_port_is_chosen_for_metrics_at_port_0(tmp_path: Path) -> None:
    asked = request(
        tmp_path,
        http=str(any_free_port("127.0.0.1")),
        sizes=Sizes(chatd=2),
        environment={"CHATD_METRICS_LISTEN": "127.0.0.1:0"},
    )
    first, second = choose_ports(asked).metrics["chatd"]
    assert first != second
    assert 0 not in (first.port, second.port)


def test_a_metrics_address_that_is_taken_or_none_is_told_by_its_variable(tmp_path: Path) -> None:
    http = str(any_free_port("127.0.0.1"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for wrong in (address, "here", http):
            asked = request(tmp_path, http=http, environment={"CHATD_METRICS_LISTEN": wrong})
            with pytest.raises(ConfigurationProblem, match=f"CHATD_METRICS_LISTEN {wrong}"):
                choose_ports(asked)


@pytest.mark.parametrize(
    "url",
    [
        "chat.example.org",
        "ftp://chat.example.org",
        "https://",
        "https://a:b",
        "https://u:p@chat.example.org",
        "https://chat.example.org/path",
        "https://chat.example.org?x=1",
        "https://chat example.org",
    ],
)
def test_a_public_url_that_is_no_origin_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigurationProblem, match="--public-url"):
        prepare(request(tmp_path, http=str(any_free_port("127.0.0.1")), public_url=url))
