from collections.abc import Mapping
from pathlib import Path

import pytest

from parley.cli.home.layout import Home
from parley.cli.stack.plan import ProcessSpec, Readiness, Sign, plan, waves
from parley.cli.stack.ports import HostPort
from parley.cli.stack.service_settings import problems_of
from parley.cli.stack.spec import Caller, Ports, Sizes, Stack, prefix_of

HOME = Home(Path("/h"), Path("/tmp"))
PORTS = Ports((HostPort("127.0.0.1", 8787),), HostPort("127.0.0.1", 9000))


ONE_OF_EACH = Sizes()


def stack(
    sizes: Sizes = ONE_OF_EACH, ports: Ports = PORTS, environment: Mapping[str, str] | None = None
) -> Stack:
    return Stack(HOME, sizes, ports, Caller("/python", 42, environment or {}))


def find(specs: tuple[ProcessSpec, ...], name: str) -> ProcessSpec:
    return next(spec for spec in specs if spec.name == name)


def test_a_stack_has_every_service_and_as_many_of_each_as_asked() -> None:
    two_gateways = Ports((HostPort("127.0.0.1", 8787), HostPort("127.0.0.1", 8788)), PORTS.mcp_demo)
    specs = plan(stack(Sizes(chatd=2, gateway=2, toolrunner=1, mcpgateway=1), two_gateways))
    assert [spec.name for spec in specs] == [
        "mcp-demo-0",
        "toolrunner-0",
        "mcpgateway-0",
        "chatd-0",
        "chatd-1",
        "gateway-0",
        "gateway-1",
    ]


def test_chatd_knows_its_upstreams_its_database_and_its_keys() -> None:
    assert find(plan(stack(Sizes(toolrunner=2))), "chatd-0") == ProcessSpec(
        name="chatd-0",
        service="chatd",
        argv=("/python", "-m", "chatd"),
        environment={
            "CHATD_DATABASE_URL_FILE": "/h/keys/chatd.database",
            "CHATD_GATEWAY": "unix:/h/run/gateway-0.sock",
            "CHATD_INSTANCE_FILE": "/h/run/chatd-0.instance",
            "CHATD_LISTEN": "unix:/h/run/chatd-0.sock",
            "CHATD_MASTER_KEY_FILE": "/h/keys/master.keyring",
            "CHATD_MCPGATEWAY": "unix:/h/run/mcpgateway-0.sock",
            "CHATD_PARENT_PID": "42",
            "CHATD_SIGNING_KEY_FILE": "/h/keys/chatd.key",
            "CHATD_TOOLRUNNER": "unix:/h/run/toolrunner-0.sock,unix:/h/run/toolrunner-1.sock",
            "CHATD_TRUST_FILE": "/h/keys/trust.json",
        },
        address="unix:/h/run/chatd-0.sock",
        readiness=(Readiness(Sign.GRPC_HEALTH, "unix:/h/run/chatd-0.sock"),),
        depends_on=("toolrunner", "mcpgateway"),
        instance_file=Path("/h/run/chatd-0.instance"),
    )


def test_each_gateway_has_a_port_of_its_own_and_all_share_the_public_url() -> None:
    ports = Ports((HostPort("0.0.0.0", 80), HostPort("0.0.0.0", 81)), PORTS.mcp_demo)
    second = find(plan(stack(Sizes(gateway=2), ports)), "gateway-1")
    assert second.environment["GATEWAY_HTTP_LISTEN"] == "0.0.0.0:81"
    assert second.environment["GATEWAY_PUBLIC_URL"] == "http://127.0.0.1:80"
    assert second.readiness == (
        Readiness(Sign.GRPC_HEALTH, "unix:/h/run/gateway-1.sock"),
        Readiness(Sign.HTTP_OK, "http://127.0.0.1:81/readyz"),
    )


def test_replicas_serve_metrics_at_different_addresses() -> None:
    metrics = {"chatd": (HostPort("0.0.0.0", 9464), HostPort("0.0.0.0", 9465))}
    ports = Ports(PORTS.http, PORTS.mcp_demo, metrics)
    caller = {"CHATD_METRICS_LISTEN": "0.0.0.0:9464"}
    specs = plan(stack(Sizes(chatd=2), ports, caller))
    chatd = [find(specs, f"chatd-{number}") for number in range(2)]
    assert [spec.environment["CHATD_METRICS_LISTEN"] for spec in chatd] == [
        "0.0.0.0:9464",
        "0.0.0.0:9465",
    ]
    assert [spec.metrics for spec in chatd] == [
        "http://127.0.0.1:9464/metrics",
        "http://127.0.0.1:9465/metrics",
    ]
    assert find(specs, "gateway-0").metrics is None


def test_the_public_url_that_was_given_is_the_gateways() -> None:
    given = Stack(HOME, ONE_OF_EACH, PORTS, Caller("/python", 42, {}), "https://chat.example.org")
    environment = find(plan(given), "gateway-0").environment
    assert environment["GATEWAY_PUBLIC_URL"] == "https://chat.example.org"


def test_push_services_may_contact_a_public_url_unless_somebody_else_is_named() -> None:
    variable, url = "CHATD_PUSH_CONTACT", "https://chat.example.org"
    named = {variable: "mailto:operator@example.com"}
    contacts = [
        find(
            plan(Stack(HOME, ONE_OF_EACH, PORTS, Caller("/python", 42, given), public)), "chatd-0"
        ).environment.get(variable)
        for given, public in (({}, url), (named, url), ({}, None))
    ]
    assert contacts == [url, named[variable], None]


def test_the_variable_of_the_public_url_is_no_problem() -> None:
    assert problems_of(stack(environment={"GATEWAY_PUBLIC_URL": "https://a.example"})) == ()


def test_the_demo_server_gets_an_address_and_mcpgateway_its_url() -> None:
    specs = plan(stack())
    demo = find(specs, "mcp-demo-0")
    assert demo.environment == {
        "MCP_DEMO_LISTEN": "127.0.0.1:9000",
        "MCP_DEMO_PARENT_PID": "42",
    }
    assert demo.readiness == (Readiness(Sign.ACCEPTS, "tcp:127.0.0.1:9000"),)
    assert (
        find(specs, "mcpgateway-0").environment["MCPGATEWAY_DEMO_SERVER_URL"]
        == "http://127.0.0.1:9000/mcp"
    )


def test_provider_keys_reach_chatd_only_and_nothing_else_of_the_caller_reaches_anyone() -> None:
    caller = {"PATH": "/bin", "LANG": "C", "OPENAI_API_KEY": "k", "AWS_SECRET": "s"}
    specs = plan(stack(environment=caller))
    with_key = {spec.service for spec in specs if "k" in spec.environment.values()}
    assert with_key == {"chatd"}
    chatd = find(specs, "chatd-0")
    assert chatd.environment["CHATD_OPENAI_API_KEY"] == "k"
    assert "k" not in chatd.argv
    assert not [spec for spec in specs if "AWS_SECRET" in spec.environment]
    assert {spec.environment["PATH"] for spec in specs} == {"/bin"}


def test_a_callers_setting_reaches_its_service_only() -> None:
    specs = plan(stack(environment={"CHATD_LOG_LEVEL": "debug"}))
    assert {spec.service for spec in specs if "CHATD_LOG_LEVEL" in spec.environment} == {"chatd"}


def test_settings_that_the_stack_chooses_cannot_be_set_by_the_caller() -> None:
    assert problems_of(
        stack(
            environment={
                "CHATD_LISTEN": "x",
                "GATEWAY_DATABASE_URL": "y",
                "GATEWAY_HTTP_LISTEN": "127.0.0.1:9000",
                "CHATD_LOG_LEVEL": "z",
            }
        )
    ) == (
        "CHATD_LISTEN is set by `parley up` itself: unset it",
        "GATEWAY_DATABASE_URL is set by `parley up` itself: unset it",
        "GATEWAY_HTTP_LISTEN is set by `parley up` itself: unset it, and use --http",
    )


def user_ranges(nodes: int, environment: Mapping[str, str] | None = None) -> list[tuple[int, int]]:
    """Return the first user of each node, and how many there are."""
    given = [
        spec.environment
        for spec in plan(stack(Sizes(toolrunner=nodes), environment=environment))
        if spec.service == "toolrunner"
    ]
    return [
        (int(each["TOOLRUNNER_FIRST_USER"]), int(each["TOOLRUNNER_USERS_MAX"])) for each in given
    ]


@pytest.mark.parametrize("nodes", [1, 2, 3, 5, 64])
def test_no_two_nodes_have_a_user_in_common(nodes: int) -> None:
    # The two users below the first are the node's own.
    users = [range(first - 2, first + count) for first, count in user_ranges(nodes)]
    assert len(set().union(*users)) == sum(map(len, users))
    assert (min(each.start for each in users), max(each.stop for each in users) <= 60_000) == (
        19_998,
        True,
    )


def test_a_node_keeps_its_first_user_when_others_come() -> None:
    assert user_ranges(1) == [(20_000, 39_998)]
    assert user_ranges(2) == [(20_000, 19_998), (40_000, 19_998)]
    assert user_ranges(4) == [(20_000, 9_998), (40_000, 9_998), (30_000, 9_998), (50_000, 9_998)]


def test_the_range_that_the_caller_sets_is_divided_and_an_invalid_one_is_left_to_toolrunner() -> (
    None
):
    given = {"TOOLRUNNER_FIRST_USER": "200000", "TOOLRUNNER_USERS_MAX": "6400"}
    assert user_ranges(2, given) == [(200_000, 3_198), (203_200, 3_198)]
    assert problems_of(stack(environment=given)) == ()
    invalid = plan(stack(environment={"TOOLRUNNER_FIRST_USER": "many"}))
    assert find(invalid, "toolrunner-0").environment["TOOLRUNNER_FIRST_USER"] == "many"


def test_waves_follow_the_dependencies() -> None:
    named = [[spec.name for spec in wave] for wave in waves(plan(stack(Sizes(chatd=2))))]
    assert named == [
        ["mcp-demo-0", "toolrunner-0"],
        ["mcpgateway-0"],
        ["chatd-0", "chatd-1"],
        ["gateway-0"],
    ]


def test_services_that_wait_for_each_other_are_refused() -> None:
    first = ProcessSpec("a-0", "a", (), {}, "", (), depends_on=("b",))
    second = ProcessSpec("b-0", "b", (), {}, "", (), depends_on=("a",))
    with pytest.raises(ValueError, match="wait for each other"):
        waves((first, second))


def test_one_variable_can_set_the_same_for_every_service() -> None:
    caller = {"PARLEY_ENVIRONMENT": "development", "CHATD_ENVIRONMENT": "production"}
    specs = plan(stack(environment=caller))
    found = {
        spec.service: spec.environment.get(f"{prefix_of(spec.service)}_ENVIRONMENT")
        for spec in specs
    }
    assert found == {
        "mcp-demo": None,
        "toolrunner": "development",
        "mcpgateway": "development",
        "chatd": "production",
        "gateway": "development",
    }
