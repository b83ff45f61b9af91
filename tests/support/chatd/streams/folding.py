"""A reader that applies events as a client does, and finds fault with every loss and repetition."""

from dataclasses import dataclass, field, replace
from typing import Any

from chatd.primitives.domain.ids import ChatId
from chatd.streams.store.chat_reads import ChatReadRequest, PostgresStreamReads
from parley.api.chat.v1 import chat_pb2, event_pb2


@dataclass(frozen=True, slots=True)
class Folded:
    """What a client knows of a chat.

    Attributes:
        messages: Id and revision with the text.
        preview: The text shown of the open episode, with its number.
        messages_at_status: The messages there were when the status was last told.
    """

    messages: tuple[tuple[int, int, str], ...] = ()
    queue: tuple[str, ...] = ()
    status: int = 0
    error: str = ""
    episode: tuple[int, int] = (0, 0)
    seq: int = 0
    preview: str = ""
    cursor: str = field(default="", compare=False)
    messages_at_status: tuple[tuple[int, int, str], ...] = field(default=(), compare=False)

    @property
    def is_settled_at(self) -> int | None:
        """The version after which everything was delivered; None inside of a step."""
        base, target, *_ = map(int, self.cursor.rpartition("-")[2].split("."))
        return target if base == target else None


def fold(known: Folded, event: event_pb2.ChatEvent) -> Folded:
    """Apply one event.

    Raises:
        AssertionError: It repeats something, or something before it is missing.
    """
    known = replace(known, cursor=event.cursor)
    match event.WhichOneof("kind"):
        case "message":
            message = event.message
            text = "".join(part.text.text for part in message.content)
            row = (message.id, message.revision, text)
            assert all(each[0] != message.id for each in known.messages), f"again: {row}"
            assert not known.messages or known.messages[-1][0] < message.id, "out of order"
            return replace(known, messages=(*known.messages, row))
        case "history_reset":
            return replace(known, messages=())
        case "status":
            status = event.status.status
            # A turn that went by unseen ends with the status that was told before it.
            is_turn_past = known.messages != known.messages_at_status
            assert status != known.status or is_turn_past, f"status {status} again"
            error = known.error if status == chat_pb2.CHAT_STATUS_ERROR else ""
            return replace(known, status=status, error=error, messages_at_status=known.messages)
        case "queue_update":
            queue = event.queue_update.queued_messages
            texts = tuple(each.content[0].text.text for each in queue)
            return replace(known, queue=texts)
        case "error":
            assert not known.error, "the error again"
            return replace(known, error=event.error.message)
        case "preview_reset":
            return replace(known, episode=(0, 0), seq=0, preview="")
        case "message_part":
            return _with_part(known, event.message_part)
        case "retry" | "action_required" | "action_ended":
            return known
        case other:
            raise AssertionError(f"{other} was not expected")


def _with_part(known: Folded, part: event_pb2.MessagePartEvent) -> Folded:
    episode = (part.history_version, part.generation_attempt)
    if known.seq:
        assert known.episode == episode, "a part of another episode without a reset"
    assert part.seq == known.seq + 1, f"part {part.seq} after {known.seq}"
    preview = known.preview + part.part.text.text
    return replace(known, episode=episode, seq=part.seq, preview=preview)


async def stored(reads: PostgresStreamReads, chat_id: ChatId) -> Folded:
    """Return what a client would know that has everything, without the preview."""
    (found,) = await reads.read((ChatReadRequest(chat_id, limit=10_000),))
    assert found is not None
    return Folded(
        messages=tuple(
            (each.id, each.revision, "".join(getattr(part, "text", "") for part in each.content))
            for each in found.messages
        ),
        queue=tuple(getattr(each.content[0], "text", "") for each in found.queue),
        status=chat_pb2.ChatStatus.Value(f"CHAT_STATUS_{found.state.status.name}"),
        error="" if found.state.last_error is None else found.state.last_error.message,
    )


def without_preview(known: Folded) -> Folded:
    """Return what is durable of what a client knows."""
    return replace(known, episode=(0, 0), seq=0, preview="")


async def read_until(
    call: Any, known: Folded, version: int, events: list[event_pb2.ChatEvent] | None = None
) -> Folded:
    """Apply events until everything up to a version was delivered."""
    while not known.cursor or (known.is_settled_at or 0) < version:
        response = await call.read()
        assert response.HasField("event"), response
        known = fold(known, response.event)
        if events is not None:
            events.append(response.event)
    return known
