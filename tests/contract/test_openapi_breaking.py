"""Changes of the OpenAPI document that break clients are reported, and no others."""

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
EARLIER: Any = {
    "info": {"version": "1.0.0"},
    "paths": {
        "/chats": {
            "post": {
                "operationId": "createChat",
                "parameters": [{"name": "key", "in": "header", "schema": {"type": "string"}}],
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/In"}}
                    },
                },
                "responses": {
                    "201": {
                        "content": {
                            "application/json": {"schema": {"$ref": "#/components/schemas/Out"}}
                        }
                    }
                },
            }
        }
    },
    "components": {
        "schemas": {
            "In": {
                "type": "object",
                "required": ["text"],
                "properties": {
                    "text": {"type": "string", "maxLength": 9},
                    "mode": {"type": ["string", "null"], "enum": ["ask", "plan"]},
                },
            },
            "Out": {
                "type": "object",
                "required": ["id"],
                "properties": {
                    "id": {"type": "string"},
                    "status": {"type": "string", "enum": ["waiting", "running"]},
                    "children": {"type": "array", "items": {"$ref": "#/components/schemas/Out"}},
                },
            },
        }
    },
}

Change = Callable[[Any, Any, Any], object]


def post(document: Any) -> Any:
    return document["paths"]["/chats"]["post"]


def reported(change: Change, directory: Path) -> list[str]:
    later = copy.deepcopy(EARLIER)
    schemas = later["components"]["schemas"]
    change(later, schemas["In"], schemas["Out"])
    for name, document in (("earlier", EARLIER), ("later", later)):
        (directory / name).write_text(json.dumps(document))
    found = subprocess.run(
        [sys.executable, ROOT / "scripts" / "openapi_breaking.py", "earlier", "later"],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = found.stdout.strip().splitlines()
    assert (found.returncode, found.stderr) == (int(bool(lines)), "")
    return [line.removeprefix("POST /chats: ") for line in lines]


def new_parameter(*, required: bool) -> Any:
    return {"name": "q", "in": "query", "required": required, "schema": {"type": "string"}}


BREAKING: dict[str, tuple[Change, str]] = {
    "operation": (lambda later, _in, _out: later["paths"].pop("/chats"), "removed"),
    "name": (
        lambda later, _in, _out: post(later).update(operationId="addChat"),
        "operationId was createChat",
    ),
    "parameter": (
        lambda later, _in, _out: post(later)["parameters"].clear(),
        "parameter header key removed",
    ),
    "required parameter": (
        lambda later, _in, _out: post(later)["parameters"].append(new_parameter(required=True)),
        "parameter query q is required now",
    ),
    "response": (
        lambda later, _in, _out: post(later).update(responses={}),
        "no response 201 any more",
    ),
    "required input": (
        lambda _later, taken, _out: taken["required"].append("mode"),
        "In.mode: is required now",
    ),
    "removed input": (
        lambda _later, taken, _out: taken["properties"].pop("mode"),
        "In.mode: removed",
    ),
    "removed value": (
        lambda _later, taken, _out: taken["properties"]["mode"]["enum"].remove("plan"),
        "In.mode: value plan removed",
    ),
    "narrower type": (
        lambda _later, taken, _out: taken["properties"]["mode"].update(type="string"),
        "In.mode: type was null, string, is string",
    ),
    "narrower bound": (
        lambda _later, taken, _out: taken["properties"]["text"].update(maxLength=8),
        "In.text: maxLength was 9, is 8",
    ),
    "removed output": (
        lambda _later, _in, answered: answered["properties"].pop("status"),
        "Out.status: removed",
    ),
    "absent output": (
        lambda _later, _in, answered: answered["required"].clear(),
        "Out.id: may be absent now",
    ),
    "other type of output": (
        lambda _later, _in, answered: answered["properties"]["id"].update(type="integer"),
        "Out.id: type was string, is integer",
    ),
    "output that may be null": (
        lambda _later, _in, answered: answered["properties"]["id"].update(type=["string", "null"]),
        "Out.id: type was string, is null, string",
    ),
}


@pytest.mark.parametrize(("change", "line"), BREAKING.values(), ids=BREAKING.keys())
def test_a_change_that_breaks_clients_is_reported(
    change: Change, line: str, tmp_path: Path
) -> None:
    assert reported(change, tmp_path) == [line]


def test_a_new_version_may_break_clients(tmp_path: Path) -> None:
    def renew(later: Any, taken: Any, answered: Any) -> None:
        later["info"]["version"] = "2.0.0"
        later["paths"].clear()

    assert reported(renew, tmp_path) == []


def test_what_clients_may_ignore_is_not_reported(tmp_path: Path) -> None:
    def grow(later: Any, taken: Any, answered: Any) -> None:
        later["paths"]["/users"] = {"get": {"operationId": "listUsers", "responses": {}}}
        post(later)["parameters"].append(new_parameter(required=False))
        post(later)["responses"]["409"] = {"content": {}}
        taken["required"].clear()
        taken["properties"]["text"]["maxLength"] = 10
        taken["properties"]["mode"]["enum"].append("act")
        taken["properties"]["title"] = {"type": "string"}
        answered["properties"]["status"]["enum"].remove("running")
        answered["properties"]["title"] = {"type": "string"}
        answered["required"].append("title")

    assert reported(grow, tmp_path) == []
