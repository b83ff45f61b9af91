"""`parley mcp resources` and `parley mcp prompts`: what messages can refer to."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from parley.cli.api.client import Api
from parley.cli.text import echo_foreign, print_table

RESOURCE_COLUMNS: Final = ("uri", "name", "type", "description")
PROMPT_COLUMNS: Final = ("prompt", "arguments", "description")
CALL_S_MAX: Final = 75.0


def print_resources(api: Api, path: str, uri: str | None, *, as_json: bool) -> None:
    """List the resources of a server, or print the one at a URI."""
    if uri is None:
        _print_resource_list(api, path, as_json=as_json)
    else:
        _print_resource(api, path, uri, as_json=as_json)


def print_prompts(
    api: Api,
    path: str,
    prompt: Mapping[str, str] | None,
    arguments: Sequence[str],
    *,
    as_json: bool,
) -> None:
    """List the prompts of a server, or print one as the text that a message would have.

    Args:
        api: The gateway.
        path: Where the prompts of the server are.
        prompt: The prompt, as its route names it; None for the list.
        arguments: Its arguments, each as ARGUMENT=VALUE.
        as_json: Whether to print the whole answer.

    Raises:
        UsageError: An argument is not ARGUMENT=VALUE.
    """
    if prompt is None:
        _print_prompt_list(api, path, as_json=as_json)
    else:
        _print_prompt(api, path, prompt, _prompt_arguments(arguments), as_json=as_json)


def _print_resource_list(api: Api, path: str, *, as_json: bool) -> None:
    """List resources; the URI of a template has variables in braces."""
    found = api.call("GET", path, needs="items", within_s=CALL_S_MAX)
    if as_json:
        _print_json(found)
        return
    rows = [
        [
            item["uri"],
            item["title"] or item["name"] or "-",
            "template" if item["is_template"] else item["media_type"] or "-",
            _line(item["description"]),
        ]
        for item in found["items"]
    ]
    print_table(RESOURCE_COLUMNS, rows)


def _print_resource(api: Api, path: str, uri: str, *, as_json: bool) -> None:
    """Print the contents of a resource: its text, and of the rest what it is."""
    read = api.call("POST", f"{path}/read", {"uri": uri}, needs="content", within_s=CALL_S_MAX)
    if as_json:
        _print_json(read)
        return
    for part in read["content"]:
        text = (part.get("resource") or part).get("text")
        echo_foreign(json.dumps(part, ensure_ascii=False) if text is None else text)


def _print_prompt_list(api: Api, path: str, *, as_json: bool) -> None:
    """List prompts; arguments that may be left out are in brackets."""
    found = api.call("GET", path, needs="items", within_s=CALL_S_MAX)
    if as_json:
        _print_json(found)
        return
    rows = [
        [item["name"], _arguments(item["arguments"]) or "-", _line(item["description"])]
        for item in found["items"]
    ]
    print_table(PROMPT_COLUMNS, rows)


def _print_prompt(
    api: Api, path: str, prompt: Mapping[str, str], arguments: Mapping[str, str], *, as_json: bool
) -> None:
    body = {**prompt, "arguments": dict(arguments)}
    filled = api.call("POST", f"{path}/get", body, needs="text", within_s=CALL_S_MAX)
    if as_json:
        _print_json(filled)
    else:
        echo_foreign(filled["text"])


def _prompt_arguments(given: Sequence[str]) -> dict[str, str]:
    wrong = [each for each in given if "=" not in each]
    if wrong:
        raise click.UsageError(f"{wrong[0]!r} is not ARGUMENT=VALUE")
    return dict(each.split("=", 1) for each in given)


def _arguments(arguments: Any) -> str:
    return " ".join(
        each["name"] if each["is_required"] else f"[{each['name']}]" for each in arguments
    )


def _line(text: str) -> str:
    return " ".join(text.split())[:60]


def _print_json(document: Any) -> None:
    echo_foreign(json.dumps(document, indent=2, ensure_ascii=False))
