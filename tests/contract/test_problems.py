"""Every problem that a request may be answered with has a page, in words for people."""

import ast
import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from chatd.errors import ERRORS as CHATD_ERRORS
from chatd.tools.lifecycle import TOOLS as LIFECYCLE_TOOLS
from chatd.tools.workspace.toolset import TOOLS as WORKSPACE_TOOLS
from chatd.workspaces.domain.errors import WorkspaceNotReady
from chatd.workspaces.domain.workspace import State
from gateway.http.application import UserRoute
from gateway.http.problems.errors import GENERIC_TEXT_REASONS, UpstreamProblem, http_problem_of
from gateway.http.problems.field_paths import FieldLocation, RouteInputs, location_of
from gateway.web.problem_pages import FIELD_CODES, PROBLEM_REASONS, SECTIONS
from parley.api.chat.v1.error_reason_pb2 import ErrorReason as ChatReason
from parley.api.identity.v1.error_reason_pb2 import ErrorReason as IdentityReason
from parley.api.mcp.v1.error_reason_pb2 import ErrorReason as McpReason
from parley.api.workspace.v1.error_reason_pb2 import ErrorReason as WorkspaceReason
from parley.identity import RefusalReason
from support.gateway.routes import every_route
from toolrunner.filesystem import errors as file_errors
from toolrunner.primitives import errors as toolrunner_errors
from toolrunner.problems import ERRORS as TOOLRUNNER_ERRORS

ROOT = Path(__file__).resolve().parent.parent.parent
REASONS = {
    value.name.removeprefix("ERROR_REASON_")
    for reasons in (ChatReason, IdentityReason, McpReason, WorkspaceReason)
    for value in reasons.DESCRIPTOR.values
} - {"UNSPECIFIED"}
# Codes that are constants elsewhere, or repeat a status of grpc.
NAMED_ELSEWHERE = {
    *("CANCELLED", "DEADLINE_EXCEEDED", "MESSAGE_TOO_LARGE", "UNAVAILABLE"),
    # Of a connection, before there is a request, or in the midst of one.
    *("BAD_REQUEST", "INVALID_CHUNKS", "REQUEST_HEADER_FIELDS_TOO_LARGE", "TOO_MANY_CONNECTIONS"),
}
TOOLS = {*LIFECYCLE_TOOLS, *WORKSPACE_TOOLS} - {"execute"}
# Fields that services send to each other, and the bytes of files, which have no fields.
NOT_WRITTEN_BY_CLIENTS = {
    *("after_log_sequence", "context.epoch", "epoch", "execution_ids", "recipe.source", "secrets"),
    *("node.address", "node.directories", "node.mirrors", "workspaces", "open", "open.context"),
    *("budget.head_bytes", "budget.line_bytes", "context_lines", "offset_bytes", "offset_line"),
    *("chunk", "files", "head", "keys", "limit.subject", "patch", "piece", "spec.program"),
    "update_mask",
}
# What only a model or a service can follow.
NOT_FOR_PEOPLE = ("(rm)", "use a command", "profile", "on this node", "ask a node", "let go of")


def sample_arguments(kind: type) -> list[object]:
    parameters = [*inspect.signature(kind).parameters.values()]
    required = [each for each in parameters if each.default is each.empty]
    texts = {"dimension": "disk_bytes"}
    return [7 if each.annotation is int else texts.get(each.name, "x") for each in required]


def test_every_reason_has_a_page() -> None:
    assert REASONS - set(PROBLEM_REASONS) == set()


def test_every_code_that_the_code_names_has_a_page_and_no_page_is_about_nothing() -> None:
    named = {*codes_given_to("HttpProblem", "services/gateway"), *RefusalReason}
    named |= {*codes_given_to("BadFrame", "services/gateway")}
    named |= {*codes_given_to("Problem", "services", "libs/parley/rpc", "libs/parley/identity")}

    assert named - set(PROBLEM_REASONS) == set()
    assert set(PROBLEM_REASONS) - named - REASONS - NAMED_ELSEWHERE == set()


def test_every_code_of_a_field_is_described() -> None:
    assert codes_given_to("FieldError", "services/gateway") == set(FIELD_CODES)


def test_a_code_is_described_once() -> None:
    assert sum(map(len, SECTIONS.values())) == len(PROBLEM_REASONS)


@pytest.mark.parametrize("code", sorted(PROBLEM_REASONS))
def test_a_page_says_what_happened_and_what_to_do_without_the_tools_of_a_model(code: str) -> None:
    kind = PROBLEM_REASONS[code]

    assert kind.means.endswith(".")
    assert kind.remedy.endswith(".")
    assert hints_in(kind.text) == []


def workspace_failures() -> Iterator[Exception]:
    """Yield one of each error that a node answers with, and of each state of a workspace."""
    for kind in TOOLRUNNER_ERRORS:
        if kind.__module__ == toolrunner_errors.__name__:
            yield kind(*sample_arguments(kind))
    yield file_errors.not_found("a.py")
    yield file_errors.too_large("a.bin", 11, 10)
    yield file_errors.wrong_kind("a", "directory", "name a file in it")
    for state in State:
        yield WorkspaceNotReady("w", state)
    for step in ("start_workspace", "create_workspace", "wait_for_it"):
        yield toolrunner_errors.WorkspaceNotReady("w", "stopped", step)


@pytest.mark.parametrize("error", [*workspace_failures()], ids=lambda error: type(error).__name__)
def test_what_a_model_is_told_to_do_is_not_told_over_http(error: Exception) -> None:
    tables: Mapping[type[Exception], Any] = {**CHATD_ERRORS, **TOOLRUNNER_ERRORS}
    refusal = http_problem_of(UpstreamProblem(tables[type(error)](error)))

    assert hints_in(refusal.detail) == []
    assert hints_in(str(refusal.facts)) == []
    assert refusal.detail


def test_every_field_that_a_service_refuses_is_one_that_clients_write_or_that_none_writes() -> None:
    routes = [
        RouteInputs(route.path, route.query, route.body)
        for route in every_route()
        if isinstance(route, UserRoute)
    ]
    nowhere = {
        field
        for field in refused_fields("services/chatd", "services/toolrunner")
        if not any(is_written(location_of(field, asked)) for asked in routes)
    }

    assert nowhere == NOT_WRITTEN_BY_CLIENTS


def is_written(place: FieldLocation) -> bool:
    return bool(place.parameter or place.pointer)


def refused_fields(*directories: str) -> set[str]:
    """Return the fields that are refused by name; those that are put together are left out."""
    return {
        field.value
        for directory in directories
        for path in (ROOT / directory).rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call)
        and getattr(call.func, "id", "") == "InvalidRequest"
        and isinstance(field := call.args[0], ast.Constant)
        and isinstance(field.value, str)
    }


def test_texts_that_replace_others_are_about_reasons_of_workspaces() -> None:
    assert GENERIC_TEXT_REASONS - set(SECTIONS["Workspaces"]) == set()


def hints_in(text: str) -> list[str]:
    return [word for word in (*TOOLS, *NOT_FOR_PEOPLE) if word in text]


def codes_given_to(name: str, *directories: str) -> set[str]:
    """Return the codes that calls of `name` are given, as texts or as a default beside them."""
    return {
        argument.value
        for directory in directories
        for path in (ROOT / directory).rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == name
        for given in call.args
        for argument in ast.walk(given)
        if isinstance(argument, ast.Constant)
        and isinstance(argument.value, str)
        and argument.value.replace("_", "").isalpha()
        and argument.value.isupper()
        and len(argument.value) > 1
        and not argument.value.startswith("ERROR_REASON_")
    }
