"""What models tell the people who watch about a call, which no server gets.

Tools of workspaces take the argument `model_intent`, so models give it to tools of servers as well;
those may refuse arguments that they do not have.
"""

from typing import Any, Final

import msgspec

INTENT: Final = "model_intent"


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
