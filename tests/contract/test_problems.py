"""The protos declare each error once, in words for people, and nothing else maps errors."""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import grpc
import pytest

from chatd.errors import ERRORS as CHATD_ERRORS
from chatd.tools.lifecycle import TOOLS as LIFECYCLE_TOOLS
from chatd.tools.workspace.toolset import TOOLS as WORKSPACE_TOOLS
from chatd.workspaces.domain.errors import WorkspaceNotReady
from chatd.workspaces.domain.workspace import State
from gateway.http.application import UserRoute
from gateway.http.problems.errors import UpstreamProblem, http_problem_of
from gateway.http.problems.field_paths import FieldLocation, RouteInputs, location_of
from gateway.web.problem_pages import SECTIONS
from parley.api.error.v1.http_error_reason_pb2 import HttpErrorReason
from parley.api.error.v1.rpc_error_reason_pb2 import RpcErrorReason
from parley.cli.main import cli
from parley.contract.errors import ENUMS, ERROR_SPECS, FIELD_CODES, specs_of
from support.gateway.routes import every_route
from support.source.modules import modules_below, nodes_of, source_of
from toolrunner.filesystem import errors as file_errors
from toolrunner.primitives import errors as toolrunner_errors
from toolrunner.problems import ERRORS as TOOLRUNNER_ERRORS

ROOT = Path(__file__).resolve().parent.parent.parent
STATUSES = {status.name: status for status in grpc.StatusCode if status is not grpc.StatusCode.OK}
# Codes of the frames of a terminal, which has no HTTP status any more.
FRAME_CODES = {"BAD_FRAME", "FRAME_TOO_LARGE", "TOO_MANY_FRAMES", "VIEW_ONLY"}
TOOLS = {*LIFECYCLE_TOOLS, *WORKSPACE_TOOLS} - {"execute"}
# Fields that services send to each other, and the bytes of files, which have no fields.
NOT_WRITTEN_BY_CLIENTS = {
    "agent_chat_ids",
    *("after_log_sequence", "context.epoch", "epoch", "execution_ids", "spec.source", "secrets"),
    *("node.address", "open", "open.context", "open.owns_process"),
    "owner_epoch",
    *("budget.head_bytes", "budget.line_bytes", "offset_bytes", "offset_line"),
    *("chunk", "files", "head", "keys", "limit.subject", "patch", "piece", "spec.program"),
    *("scope", "update_mask"),
}
# What only a model or a service can follow.
NOT_FOR_PEOPLE = ("(rm)", "use a command", "profile", "on this node", "ask a node", "let go of")


def sample_arguments(kind: type) -> list[object]:
    parameters = [*inspect.signature(kind).parameters.values()]
    required = [each for each in parameters if each.default is each.empty]
    texts = {"dimension": "disk_bytes"}
    return [7 if each.annotation is int else texts.get(each.name, "x") for each in required]


def test_every_enum_of_error_reasons_is_read() -> None:
    declared = {
        match[1]
        for path in (ROOT / "protos" / "parley").rglob("*.proto")
        for match in re.finditer(r"^enum (\w*ErrorReason) {", path.read_text(), re.MULTILINE)
    }

    assert {reasons.name for reasons in ENUMS} == declared
    assert len(ENUMS) == len([*(ROOT / "protos" / "parley").rglob("*error_reason.proto")])


def test_a_reason_is_declared_equally_by_all_enums_that_contain_it() -> None:
    differing = [
        (reasons.full_name, spec.reason)
        for reasons in ENUMS
        for spec in specs_of(reasons)
        if spec != ERROR_SPECS[spec.reason]
    ]

    assert differing == []


def test_every_reason_declares_the_statuses_of_where_it_is_answered() -> None:
    of_http = {spec.reason for spec in specs_of(HttpErrorReason.DESCRIPTOR)}
    without_grpc = {name for name, spec in ERROR_SPECS.items() if spec.grpc_status is None}
    without_http = {name for name, spec in ERROR_SPECS.items() if not spec.http_status}

    assert (without_grpc, without_http) == (of_http, FRAME_CODES)


def test_every_status_of_grpc_is_a_reason_whose_text_is_replaced() -> None:
    assert {name: ERROR_SPECS[name].grpc_status for name in STATUSES} == STATUSES
    assert [name for name in STATUSES if not ERROR_SPECS[name].has_generic_text] == []


def test_what_may_be_retried_has_a_status_that_says_so() -> None:
    retryable = {name for name, spec in ERROR_SPECS.items() if spec.is_retryable}

    assert retryable == {
        name for name, spec in ERROR_SPECS.items() if spec.http_status in (429, 502, 503, 504)
    }


def test_problems_to_answer_with_are_made_from_their_reason_alone() -> None:
    making = {
        str(path)
        for path in modules_below("services", "libs/parley")
        if imports_problem(path) and [*calls_of("Problem", path)]
    }

    assert making == set()


def test_every_code_that_the_code_names_is_declared() -> None:
    given = {
        *codes_given_to("HttpProblem", "services/gateway"),
        *codes_given_to("BadFrame", "services/gateway"),
        *codes_given_to("Problem", "services", "libs/parley"),
        *codes_given_to("_problem", "services/toolrunner"),
        *codes_given_to("_soon", "services/toolrunner"),
        *codes_given_to("_table", "services/mcpgateway"),
        *codes_given_to("_telling", "services/gateway"),
    }

    assert given - set(ERROR_SPECS) == set()


def test_every_declared_code_of_no_domain_is_named_by_the_code() -> None:
    of_gateway = {spec.reason for spec in specs_of(HttpErrorReason.DESCRIPTOR)}
    of_calls = {spec.reason for spec in specs_of(RpcErrorReason.DESCRIPTOR)} - set(STATUSES)

    assert of_gateway - texts_in("services/gateway") == set()
    assert of_calls - texts_in("libs/parley") == set()


def test_an_http_status_that_the_code_names_is_the_declared_one() -> None:
    named = {
        (str(code.value), status.value)
        for path in modules_below("services/gateway")
        for call in calls_of("HttpProblem", path)
        if isinstance(status := call.args[0], ast.Constant)
        and isinstance(code := call.args[1], ast.Constant)
    }
    other = {(code, status) for code, status in named if ERROR_SPECS[code].http_status != status}

    assert other == set()


def test_every_code_of_a_field_is_described() -> None:
    assert codes_given_to("FieldError", "services/gateway") == set(FIELD_CODES)


def test_a_code_is_listed_once() -> None:
    listed = [code for section in SECTIONS.values() for code in section]

    assert sorted(listed) == sorted(ERROR_SPECS)


@pytest.mark.parametrize("code", sorted(ERROR_SPECS))
def test_a_page_says_what_happened_and_what_to_do_without_the_tools_of_a_model(code: str) -> None:
    spec = ERROR_SPECS[code]

    assert spec.meaning.endswith(".")
    assert spec.remedy.endswith(".")
    assert hints_in(f"{spec.meaning} {spec.remedy}") == []


def test_the_command_of_every_problem_exists() -> None:
    named = [spec.command for spec in ERROR_SPECS.values() if spec.command]

    assert [each for each in named if not is_command(each.split())] == []
    assert len(named) > 40


def is_command(words: list[str]) -> bool:
    """Return whether the words call `parley` with a command, and with options that it has."""
    program, *rest = words
    context = click.Context(cli)
    command: click.Command = cli
    while isinstance(command, click.Group):
        found = command.get_command(context, rest[0]) if rest else None
        if found is None:
            break
        command, rest = found, rest[1:]
    options = {name for each in command.params for name in each.opts}
    given = {each for each in rest if each.startswith("-")}
    is_whole = not isinstance(command, click.Group)
    return program == "parley" and is_whole and given <= options


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
        for path in modules_below(*directories)
        for call in calls_of("InvalidRequest", path)
        if isinstance(field := call.args[0], ast.Constant) and isinstance(field.value, str)
    }


def hints_in(text: str) -> list[str]:
    return [word for word in (*TOOLS, *NOT_FOR_PEOPLE) if word in text]


def imports_problem(path: Path) -> bool:
    return any(
        isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("parley.rpc")
        and any(name.name == "Problem" for name in node.names)
        for node in nodes_of(path)
    )


def calls_of(name: str, path: Path) -> Iterator[ast.Call]:
    """Yield the calls of a function or of a constructor."""
    # A module that does not contain the name calls nothing by it; most need no second look.
    for call in nodes_of(path) if name in source_of(path) else ():
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == name:
            yield call


def codes_given_to(name: str, *directories: str) -> set[str]:
    """Return the codes that calls of `name` or `name.of` are given, as texts or in expressions."""
    return {
        text
        for path in modules_below(*directories)
        if name in source_of(path)
        for call in nodes_of(path)
        if isinstance(call, ast.Call) and is_named(call.func, name)
        for given in call.args
        for text in codes_in(ast.walk(given))
    }


def is_named(function: ast.expr, name: str) -> bool:
    """Return whether a function is called as `name` or as `name.of`."""
    match function:
        case ast.Name(id=found) | ast.Attribute(value=ast.Name(id=found), attr="of"):
            return found == name
    return False


def texts_in(*directories: str) -> set[str]:
    return {text for path in modules_below(*directories) for text in codes_in(nodes_of(path))}


def codes_in(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and re.fullmatch("[A-Z_]{2,}", text):
            yield text
