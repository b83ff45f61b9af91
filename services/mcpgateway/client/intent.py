"""The arguments of a model's call as its server gets them.

Tools of workspaces take the argument `model_intent`, which people who watch read, so models give it
to tools of servers as well; those may refuse arguments that they do not have. Names of arguments
that a provider refuses have others there.
"""

from typing import Any, Final

import msgspec

from parley.tool_schemas import original_arguments

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
