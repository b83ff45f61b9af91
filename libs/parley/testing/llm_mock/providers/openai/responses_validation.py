"""OpenAI Responses' validation of the items that are sent back."""

import re

import msgspec

from parley.testing.llm_mock.errors import Refused
from parley.testing.llm_mock.exchange.parsing import Typed
from parley.testing.llm_mock.exchange.placeholders import IDENTITY_LENGTH, REASONED, STORED
from parley.testing.llm_mock.providers.openai.errors import bad_pattern, too_long
from parley.testing.llm_mock.providers.openai.responses_encoding import SEAL
from parley.testing.llm_mock.providers.openai.responses_request import (
    NAME_PATTERN,
    FunctionCall,
    FunctionOutput,
    Message,
    Reasoning,
    Reference,
)

CALL_ID_LENGTH_MAX = 64
OWN_ID = re.compile(rf"[a-z]+_([0-9a-f]{{{IDENTITY_LENGTH}}})\d{{2,}}")
PREFIXES: dict[type[msgspec.Struct], str] = {Reasoning: "rs", FunctionCall: "fc", Message: "msg"}


def check_items(items: tuple[msgspec.Struct, ...]) -> None:
    """Refuse items that are inconsistent, or unknown to the provider.

    Raises:
        Refused: with the provider's message.
    """
    _check_ids(items)
    for index, item in enumerate(items):
        following = items[index + 1] if index + 1 < len(items) else None
        match item:
            case Reasoning():
                _check_reasoning(item, following)
            case Reference():
                if not _is_kept(item.id):
                    raise _not_found(item.id)
            case FunctionCall() | Message() if item.id is not None:
                _check_reasoning_present(item.id, items[:index])
        if isinstance(item, FunctionCall) and not re.fullmatch(NAME_PATTERN, item.name):
            raise bad_pattern(f"input[{index}].name", NAME_PATTERN)
    _check_calls(items)


def _check_ids(items: tuple[msgspec.Struct, ...]) -> None:
    seen: set[str] = set()
    for index, item in enumerate(items):
        item_id = getattr(item, "id", None)
        if item_id is None or isinstance(item, Reference):
            continue
        prefix = PREFIXES.get(type(item))
        if prefix is not None and not item_id.startswith(prefix):
            raise Refused(
                400,
                f"Invalid 'input[{index}].id': '{item_id}'. Expected an ID that begins with "
                f"'{prefix}'.",
                param=f"input[{index}].id",
                code="invalid_value",
            )
        if item_id in seen:
            raise Refused(
                400,
                f"Duplicate item found with id {item_id}. Remove duplicate items from your input "
                "and try again.",
                param="input",
            )
        seen.add(item_id)


def _check_reasoning(item: Reasoning, following: msgspec.Struct | None) -> None:
    identity = _identity(item.id)
    if item.encrypted_content is not None:
        if identity is None or item.encrypted_content != f"{SEAL}{identity}":
            raise Refused(
                400,
                f"The encrypted content for item {item.id} could not be verified.",
                code="invalid_encrypted_content",
            )
    elif not _is_kept(item.id):
        raise _not_found(item.id)
    is_answer = isinstance(following, FunctionCall | Reasoning | Reference | Typed) or (
        isinstance(following, Message) and following.role == "assistant"
    )
    if not is_answer:
        raise Refused(
            400,
            f"Item '{item.id}' of type 'reasoning' was provided without its required following "
            "item.",
            param="input",
        )


def _check_reasoning_present(item_id: str, before: tuple[msgspec.Struct, ...]) -> None:
    """Refuse an item of an answer with reasoning whose reasoning item is left out."""
    identity = _identity(item_id)
    if identity is None or identity[1] != REASONED:
        return
    thoughts = {_identity(item.id) for item in before if isinstance(item, Reasoning)}
    if identity not in thoughts:
        raise Refused(
            400,
            f"Item '{item_id}' was provided without its required 'reasoning' item: "
            f"'rs_{identity}00'.",
            param="input",
        )


def _check_calls(items: tuple[msgspec.Struct, ...]) -> None:
    calls = [item.call_id for item in items if isinstance(item, FunctionCall)]
    seen: set[str] = set()
    for index, item in enumerate(items):
        if isinstance(item, FunctionCall):
            if len(item.call_id) > CALL_ID_LENGTH_MAX:
                raise too_long(f"input[{index}].call_id", item.call_id, CALL_ID_LENGTH_MAX)
            seen.add(item.call_id)
        if isinstance(item, FunctionOutput) and item.call_id not in seen:
            raise Refused(
                400,
                f"No tool call found for function call output with call_id {item.call_id}.",
                param="input",
            )
    answered = {item.call_id for item in items if isinstance(item, FunctionOutput)}
    for call_id in calls:
        if call_id not in answered:
            raise Refused(400, f"No tool output found for function call {call_id}.", param="input")


def _identity(item_id: str) -> str | None:
    found = OWN_ID.fullmatch(item_id)
    return None if found is None else found[1]


def _is_kept(item_id: str) -> bool:
    identity = _identity(item_id)
    return identity is not None and identity[0] == STORED


def _not_found(item_id: str) -> Refused:
    return Refused(
        404,
        f"Item with id '{item_id}' not found. Items are not persisted when `store` is set to "
        "false. Try again with `store` set to true, or remove this item from your input.",
        param="input",
        type="invalid_request_error",
    )
