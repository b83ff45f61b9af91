"""Names of arguments in calls that clients execute."""

from collections.abc import Iterable, Mapping

import msgspec

from chatd.chats.domain.pieces import storable_call
from chatd.content.domain.arguments import parsed
from chatd.content.domain.parts import Part, ToolCall
from chatd.content.domain.tools import Executor, ToolSpec
from parley.tool_schemas import original_arguments


def named_by_clients(parts: Iterable[Part], specs: Mapping[str, ToolSpec]) -> tuple[Part, ...]:
    """Return parts of an answer whose calls have the names that clients declared."""
    return tuple(
        named_by_client(part, specs) if isinstance(part, ToolCall) else part for part in parts
    )


def named_by_client(call: ToolCall, specs: Mapping[str, ToolSpec]) -> ToolCall:
    """Return a call of a client's tool with the names of arguments that the client declared.

    Models know other names if their provider refuses these. A client reads its calls in the
    message, in its events and in the actions of the chat, so the message itself has its names.
    """
    spec = specs.get(call.tool_name)
    if spec is None or spec.executor is not Executor.CLIENT or call.provider_executed:
        return call
    try:
        # Arguments that are refused later stay as they are, so that the refusal fits them.
        parsed(call.args_json)
        given = storable_call(call).args_json.encode()
    except ValueError:
        return call
    named = original_arguments(given, spec.input_schema_json.encode())
    return call if named == given else msgspec.structs.replace(call, args_json=named.decode())
