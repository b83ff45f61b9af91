"""Names, arguments and digests of tools, as pure functions of the definitions of the server."""

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from mcpgateway.servers.domain import ToolHints
from parley.tool_schemas import original_arguments

NAME_MAX: Final = 64
SUFFIX_MAX: Final = 8
ORIGINAL_NAME_MAX: Final = 128

_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")


def model_names(slug: str, server_id: str, tools: Iterable[str]) -> Mapping[str, str]:
    """Return the name under which each tool of a server is offered to models.

    A name is `slug__tool`, at most 64 of `A-Za-z0-9_-`. One that would be too long, would need a
    character replaced, or would differ from another only in case, ends in a hash of the tool
    instead; in a collision both do, so that the order of the listing never matters. Slugs hold no
    underscore, so tools of different servers cannot collide.

    A tool is left out when even its hashed name is not unique, which happens only if a server
    searches for such names.
    """
    plain = {tool: f"{slug}__{_FOREIGN.sub('_', tool)}" for tool in tools}
    hashed = {tool: _hashed(base, server_id, tool) for tool, base in plain.items()}
    is_plain = {
        tool: len(base) <= NAME_MAX and _FOREIGN.search(tool) is None
        for tool, base in plain.items()
    }
    while True:
        names = {tool: plain[tool] if is_plain[tool] else hashed[tool] for tool in plain}
        uses = Counter(name.lower() for name in names.values())
        colliding = [
            tool for tool, name in names.items() if uses[name.lower()] > 1 and is_plain[tool]
        ]
        if not colliding:
            return {tool: name for tool, name in names.items() if uses[name.lower()] == 1}
        is_plain.update(dict.fromkeys(colliding, False))


def definition_digest(
    name: str, description: str, schemas: Sequence[bytes], hints: ToolHints
) -> str:
    """Return a digest that changes when the definition of a tool does."""
    definition = (name, description, [schema.decode() for schema in schemas], hints)
    return hashlib.sha256(msgspec.json.encode(definition)).hexdigest()


def combined_digest(entries: Iterable[tuple[str, str]]) -> str:
    """Return a digest over model names with the digests of their tools."""
    return hashlib.sha256(msgspec.json.encode(sorted(entries))).hexdigest()


def canonical_json(value: object) -> bytes:
    """Return `value` as JSON that does not depend on the order of keys."""
    return msgspec.json.encode(value, order="deterministic")


def _hashed(base: str, server_id: str, tool: str) -> str:
    # A tool's name may contain lone surrogates, which UTF-8 cannot encode.
    text = f"{server_id}\0{tool}".encode("utf-8", "surrogatepass")
    suffix = base64.b32encode(hashlib.sha256(text).digest()).decode().lower()[:SUFFIX_MAX]
    return f"{base[: NAME_MAX - SUFFIX_MAX - 1]}_{suffix}"


INTENT: Final = "model_intent"


def sent_arguments(arguments_json: bytes, input_schema_json: bytes) -> bytes:
    """Return the arguments as the server of a tool expects them."""
    return original_arguments(without_intent(arguments_json, input_schema_json), input_schema_json)


def without_intent(arguments_json: bytes, input_schema_json: bytes) -> bytes:
    """Return the arguments without the intent, unless the tool itself has such an argument."""
    if INTENT.encode() not in arguments_json:
        return arguments_json
    arguments = msgspec.json.decode(arguments_json, type=dict[str, msgspec.Raw])
    if INTENT not in arguments or _has_intent(input_schema_json):
        return arguments_json
    return msgspec.json.encode({name: arguments[name] for name in arguments if name != INTENT})


def _has_intent(input_schema_json: bytes) -> bool:
    schema: Any = msgspec.json.decode(input_schema_json or b"{}")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return isinstance(properties, dict) and INTENT in properties
