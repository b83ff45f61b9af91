"""What is a number in a contract is a JSON number in the API, never a text."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from gateway.api.json_output import to_json
from parley.api.chat.v1 import (
    chat_pb2,
    message_pb2,
    model_pb2,
    settings_pb2,
    usage_pb2,
    usage_service_pb2,
)
from parley.api.workspace.v1 import (
    file_pb2,
    git_pb2,
    node_pb2,
    process_pb2,
    template_pb2,
    workspace_access_service_pb2,
    workspace_pb2,
)
from support.rpc.filled_protos import filled

CONVERSIONS: tuple[tuple[Callable[[Any], Any], Any], ...] = (
    (to_json, chat_pb2.Chat()),
    (to_json, message_pb2.Message()),
    (to_json, chat_pb2.QueuedMessage()),
    (to_json, template_pb2.Template()),
    (to_json, template_pb2.TemplateSummary()),
    (to_json, workspace_pb2.Workspace()),
    (to_json, workspace_pb2.MergeReport()),
    (to_json, node_pb2.Node()),
    (to_json, model_pb2.Model()),
    (to_json, model_pb2.Provider()),
    (to_json, settings_pb2.InstallationSettings()),
    (to_json, settings_pb2.UserSettings()),
    (to_json, usage_service_pb2.GetUserUsageResponse()),
    (to_json, usage_pb2.SpendLimit()),
    (to_json, usage_pb2.SpendStatus()),
    (to_json, process_pb2.Process()),
    (
        to_json,
        workspace_access_service_pb2.WaitWorkspaceOutputResponse(),
    ),
    (to_json, file_pb2.DirectoryEntry()),
    (to_json, git_pb2.GitRepository()),
)
# Texts by nature: the mode of a file is octal digits.
TEXTS = {"mode"}


def numbers_in(descriptor: Any) -> Iterator[str]:
    """Yield the names of all numeric fields below a message; it may contain its own type."""
    for field in descriptor.fields:
        if field.message_type is descriptor:
            continue
        if field.message_type is not None:
            if field.message_type is not descriptor:
                yield from numbers_in(field.message_type)
        elif field.cpp_type not in (
            field.CPPTYPE_STRING,
            field.CPPTYPE_BOOL,
            field.CPPTYPE_ENUM,
        ):
            yield field.name


def texts_in(document: Any, name: str = "") -> Iterator[str]:
    """Yield the names of all members that are texts."""
    match document:
        case dict():
            for key, value in document.items():
                yield from texts_in(value, key)
        case list():
            for item in document:
                yield from texts_in(item, name)
        case str():
            yield name


@pytest.mark.parametrize(
    ("convert", "message"), CONVERSIONS, ids=[each.DESCRIPTOR.name for _, each in CONVERSIONS]
)
def test_a_number_of_a_contract_is_a_number_in_json(
    convert: Callable[[Any], Any], message: Any
) -> None:
    document = json.loads(msgspec.json.encode(convert(filled(message))))

    numbers = set(numbers_in(message.DESCRIPTOR)) - TEXTS
    assert numbers & set(texts_in(document)) == set()


def test_prices_are_numbers_with_the_digits_that_were_given() -> None:
    prices = model_pb2.Prices(input="3.75", output="15", cache_read="0.0375")
    shown = to_json(model_pb2.Model(prices=prices))["prices"]

    assert msgspec.json.encode(shown) == (
        b'{"input":3.75,"output":15,"cache_read":0.0375,"cache_write":null}'
    )
