"""The OpenAPI document is valid, and describes what the routes really take and answer."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from google.protobuf.message_factory import GetMessageClass
from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from gateway.api.contract import bindings
from gateway.api.events import (
    CHAT_EVENTS,
    FEED_EVENTS,
    GIT_EVENTS,
    WORKSPACE_EVENTS,
    event_to_json,
    feed_event_to_json,
    git_event,
    workspace_event,
)
from gateway.api.json_output import to_json
from gateway.http import sse
from gateway.http.application import AnyRoute, UserRoute
from parley.api.chat.v1 import event_pb2
from parley.api.workspace.v1 import workspace_access_service_pb2, workspace_service_pb2
from parley.contract.bindings import HttpBinding, field_path
from support.gateway.routes import every_route
from support.rpc.filled_protos import filled

ROOT = Path(__file__).resolve().parents[4]
DOCUMENT = json.loads((ROOT / "services" / "gateway" / "api" / "openapi.json").read_text())
COMPONENTS = DOCUMENT["components"]
CHAT_ID = "019a8f5e-7c1d-7000-8000-3f6a1f0f2b11"
FORMATS = Draft202012Validator.FORMAT_CHECKER
REGISTRY: Registry[Any] = Registry().with_resource(
    "urn:parley", DRAFT202012.create_resource(DOCUMENT)
)


def errors_of(value: object, schema: object, *, checks_formats: bool = False) -> list[str]:
    """Return where a value does not satisfy a schema of the document."""
    placed = json.loads(json.dumps(schema).replace('"#/', '"urn:parley#/'))
    validator = Draft202012Validator(
        placed, registry=REGISTRY, format_checker=FORMATS if checks_formats else None
    )
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


def schema(name: str) -> dict[str, str]:
    assert name in COMPONENTS["schemas"]
    return {"$ref": f"#/components/schemas/{name}"}


def sent(document: object) -> Any:
    return json.loads(msgspec.json.encode(document))


def operations() -> Iterator[tuple[str, str, Any]]:
    for path, item in DOCUMENT["paths"].items():
        for verb, operation in item.items():
            yield verb.upper(), path, operation


def parameters_of(operation: Any) -> list[Any]:
    return [
        COMPONENTS["parameters"][each["$ref"].rpartition("/")[2]] if "$ref" in each else each
        for each in operation["parameters"]
    ]


def described_routes() -> list[tuple[AnyRoute, Any]]:
    served = {(route.method, route.path): route for route in every_route()}
    return [(served[verb, path], operation) for verb, path, operation in operations()]


def examples() -> Iterator[Any]:
    """Yield schema and value of every example."""
    for verb, path, operation in operations():
        answers = [(status, each) for status, each in operation["responses"].items()]
        taken = [("body", operation["requestBody"])] if "requestBody" in operation else []
        for name, holder in (*taken, *answers):
            for content in holder.get("content", {}).values():
                place = f"{verb} {path} {name}"
                if "example" in content:
                    yield pytest.param(content["schema"], content["example"], id=place)
                for kind, found in content.get("examples", {}).items():
                    value = COMPONENTS["examples"][found["$ref"].rpartition("/")[2]]["value"]
                    yield pytest.param(content["schema"], value, id=f"{place} {kind}")


@pytest.mark.parametrize(("schema", "value"), [*examples()])
def test_an_example_satisfies_its_schema(schema: object, value: object) -> None:
    assert errors_of(value, schema, checks_formats=True) == []


def test_every_declared_route_is_described_and_no_other() -> None:
    declared = {(binding.verb, binding.path) for binding in bindings()}
    served = {
        (route.method, route.path)
        for route in every_route()
        if isinstance(route, UserRoute) or route.path.startswith("/api/")
    }

    assert {(verb, path) for verb, path, _ in operations()} == declared == served


def test_operations_have_different_names() -> None:
    names = [operation["operationId"] for _, _, operation in operations()]

    assert len(names) == len({*names})


def test_the_query_of_a_route_is_the_one_that_is_described() -> None:
    for route, operation in described_routes():
        query = {each["name"] for each in parameters_of(operation) if each["in"] == "query"}
        path = [each["name"] for each in parameters_of(operation) if each["in"] == "path"]

        assert (query, path) == ({*route.query}, re.findall(r"\{(\w+)\}", route.path)), route


def test_the_body_of_a_route_is_the_one_that_is_described() -> None:
    for route, operation in described_routes():
        content = operation.get("requestBody", {}).get("content", {})
        if route.body is None:
            uploads = route.uploads if isinstance(route, UserRoute) else ()
            assert content.keys() <= {*uploads}, route
            assert bool(content) is bool(uploads), route
            continue
        fields = msgspec.structs.fields(route.body)
        body = COMPONENTS["schemas"][content["application/json"]["schema"]["$ref"].split("/")[-1]]
        assert (body["properties"].keys(), body.get("required", [])) == (
            {field.encode_name for field in fields},
            [field.encode_name for field in fields if field.required],
        ), route


def test_everything_that_a_client_sends_is_described() -> None:
    bare = [
        f"{verb} {path} {each['name']}"
        for verb, path, operation in operations()
        for each in parameters_of(operation)
        if not each.get("description")
    ]
    bare += [
        f"{name}.{member}"
        for name, found in COMPONENTS["schemas"].items()
        if name.endswith(("Body", "Input"))
        for member, inner in found.get("properties", {}).items()
        if member != "type" and not inner.get("description")
    ]

    assert bare == []


def test_every_operation_says_which_problems_it_has() -> None:
    for verb, path, operation in operations():
        found = {*operation["responses"]}
        taken = {each["name"] for each in parameters_of(operation)}

        assert found >= {"401", "403", "422", "429", "503", "default"}, path
        assert ("404" in found) is ("{" in path), path
        assert ("409" in found) is (verb != "GET"), path
        assert ("412" in found) is ("If-Match" in taken), path


def answered(binding: HttpBinding) -> bool:
    is_terminal = binding.path.endswith("/terminal")
    return not (binding.method.server_streaming or binding.options.status == 204 or is_terminal)


@pytest.mark.parametrize(
    "binding", [each for each in bindings() if answered(each)], ids=lambda each: each.operation_id
)
def test_what_a_route_answers_satisfies_its_schema(binding: HttpBinding) -> None:
    message = binding.method.output_type
    if binding.response_body:
        found = field_path(message, binding.response_body)[-1].message_type
        assert found is not None
        message = found
    operation = DOCUMENT["paths"][binding.path][binding.verb.lower()]
    status = str(binding.options.status or 200)
    described = operation["responses"][status]["content"]["application/json"]["schema"]

    for answer in (GetMessageClass(message)(), filled(GetMessageClass(message)())):
        assert errors_of(sent(to_json(answer)), described) == []


@pytest.mark.parametrize("kind", CHAT_EVENTS)
def test_an_event_of_a_chat_satisfies_its_schema(kind: str) -> None:
    event = event_pb2.ChatEvent(cursor="x")
    filled(getattr(event, kind)).SetInParent()
    shown = event_to_json(CHAT_ID, event, str)
    assert shown is not None

    assert errors_of(sent(shown[1]), schema("ChatEvent")) == []


@pytest.mark.parametrize("kind", FEED_EVENTS)
def test_an_event_of_the_feed_satisfies_its_schema(kind: str) -> None:
    change = event_pb2.FeedChange.Value(f"FEED_CHANGE_{kind.upper()}")
    event = event_pb2.FeedEvent(cursor="x", change=change)
    filled(event.chat)

    assert errors_of(sent(feed_event_to_json(event, str)[1]), schema("FeedEvent")) == []


@pytest.mark.parametrize("kind", ["workspace", "log_line", "autostop_warning"])
def test_an_event_of_a_workspace_satisfies_its_schema(kind: str) -> None:
    event = workspace_service_pb2.WatchWorkspaceResponse()
    filled(getattr(event, kind)).SetInParent()
    shown = workspace_event(event)
    assert shown is not None
    document = {"type": shown[0], "workspace_id": CHAT_ID, shown[0]: shown[1]}

    assert errors_of(sent(document), schema("WorkspaceEvent")) == []


@pytest.mark.parametrize("kind", ["snapshot", "changed", "removed"])
def test_an_event_of_repositories_satisfies_its_schema(kind: str) -> None:
    event = workspace_access_service_pb2.WatchWorkspaceGitResponse(removed="src")
    if kind != "removed":
        filled(getattr(event, kind)).SetInParent()
    shown = git_event(event)
    assert shown is not None
    document = {"type": shown[0], "chat_id": CHAT_ID, shown[0]: shown[1]}

    assert errors_of(sent(document), schema("GitEvent")) == []


@pytest.mark.parametrize(
    ("stream", "about"),
    [
        ("ChatEvent", {"chat_id": CHAT_ID}),
        ("FeedEvent", {}),
        ("WorkspaceEvent", {"workspace_id": CHAT_ID}),
        ("GitEvent", {"chat_id": CHAT_ID}),
    ],
)
def test_the_last_event_of_a_stream_satisfies_its_schema(
    stream: str, about: dict[str, str]
) -> None:
    for frame in (sse.resync(about), sse.bye(about), sse.permission_revoked(about)):
        assert errors_of(json.loads(frame.partition(b"data: ")[2]), schema(stream)) == []


def test_the_types_of_events_are_all_described() -> None:
    described = {
        stream: {*COMPONENTS["schemas"][stream]["discriminator"]["mapping"]}
        for stream in ("ChatEvent", "FeedEvent", "GitEvent", "WorkspaceEvent")
    }

    assert described == {
        "ChatEvent": {*CHAT_EVENTS, *sse.ENDING_EVENTS},
        "FeedEvent": {*FEED_EVENTS, *sse.ENDING_EVENTS},
        "GitEvent": {*GIT_EVENTS, *sse.ENDING_EVENTS},
        "WorkspaceEvent": {*WORKSPACE_EVENTS, *sse.ENDING_EVENTS},
    }
