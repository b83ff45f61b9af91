"""Live parts as protos."""

from chatd.chats.rpc.bounding import bounded
from chatd.chats.rpc.convert import ROLE, _call, part_to_proto
from chatd.content.domain import parts
from chatd.streams.engine.live import LivePart
from parley.api.chat.v1 import event_pb2


def fill_live_part(shown: event_pb2.MessagePartEvent, live: LivePart) -> None:
    """Put a live part into an event.

    Filling the message in place is twice as fast as building nested messages, and parts are
    frequent.
    """
    (part,) = bounded((live.part,))
    match part:
        case parts.Text(text):
            shown.part.text.text = text
        case parts.ToolCall(created_at=None):
            # The arguments are incomplete, and so not valid JSON.
            call = shown.part.tool_call
            call.CopyFrom(_call(part))
            call.args_delta, call.args_json = call.args_json, ""
        case _:
            shown.part.CopyFrom(part_to_proto(part))
    shown.role = ROLE[live.role]
    shown.history_version = live.history_version
    shown.generation_attempt = live.generation_attempt
    shown.seq = live.seq
    shown.part_index = live.part_index
