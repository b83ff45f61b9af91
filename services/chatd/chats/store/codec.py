"""Converts parts, errors and counters to the JSON text of their columns and back.

PostgreSQL's JSON functions reject NUL, so it is stored as a pair of private-use characters, of
which the first is doubled wherever it occurs by itself.
"""

import re
from dataclasses import replace

import msgspec

from chatd.chats.domain.chat import PendingCall, Retry, Revert
from chatd.content.domain.messages import Role, TurnError
from chatd.content.domain.parts import Part, ToolResult
from chatd.content.domain.tools import PendingKind
from chatd.content.store.legacy import UnreadableContent, legacy_parts
from chatd.models.domain.profile import ModelChoice

CONTENT_VERSION = 1
CLIENT_DEADLINE_S = 300.0  # Of calls that older versions stored.

MARK = "\ue000"
NUL_MARK = "\ue000\ue001"
# A backslash that is itself escaped must be skipped, or the text \u0000 would be taken for NUL.
_UNSAFE = re.compile(r"\\\\|\\u0000|" + MARK)
_MARKED = re.compile(f"{MARK}[{MARK}\ue001]")

_encoder = msgspec.json.Encoder()
_parts_decoder = msgspec.json.Decoder(tuple[Part, ...])
_error_decoder = msgspec.json.Decoder(TurnError)
_retry_decoder = msgspec.json.Decoder(Retry)
_choice_decoder = msgspec.json.Decoder(ModelChoice)
_revert_decoder = msgspec.json.Decoder(Revert)
_pending_decoder = msgspec.json.Decoder(tuple[PendingCall, ...])


def parts_to_json(parts: tuple[Part, ...]) -> str:
    """Return the stored form of a message's content."""
    return text_as_stored(_encoder.encode(parts).decode())


def parts_from_json(text: str) -> tuple[Part, ...]:
    """Return the parts of a stored content."""
    return _parts_decoder.decode(stored_text(text))


def content_of(text: str, version: int, role: Role) -> tuple[Part, ...]:
    """Return the parts of a stored content of any version.

    Raises:
        UnreadableContent: The version is newer than this code, or the content is malformed.
    """
    match version:
        case 1:
            return parts_from_json(text)
        case 0:
            return legacy_parts(stored_text(text), role)
        case _:
            raise UnreadableContent(version, "this Parley does not know the version")


def result_to_json(result: ToolResult) -> str:
    """Return the stored form of one result, which is embedded in a content unchanged."""
    return text_as_stored(_encoder.encode(result).decode())


def pending_to_json(pending: tuple[PendingCall, ...]) -> str:
    """Return the stored form of the open calls."""
    return text_as_stored(_encoder.encode(pending).decode())


def pending_from_json(text: str) -> tuple[PendingCall, ...]:
    """Return the open calls of a stored form."""
    if text == "[]":
        return ()
    return tuple(map(_upgraded, _pending_decoder.decode(stored_text(text))))


def _upgraded(call: PendingCall) -> PendingCall:
    """Return a call as stored now; older versions stored clients' calls without kind and id."""
    if call.execution_id is not None or call.kind is not PendingKind.DISPATCHED:
        return call
    return replace(call, kind=PendingKind.CLIENT, deadline_s=CLIENT_DEADLINE_S)


def error_to_json(error: TurnError | None) -> str | None:
    """Return the stored form of a turn's error."""
    return None if error is None else _encoder.encode(error).decode()


def error_from_json(text: str | None) -> TurnError | None:
    """Return the error of a stored form."""
    return None if text is None else _error_decoder.decode(text)


def retry_to_json(retry: Retry | None) -> str | None:
    """Return the stored form of a retry."""
    return None if retry is None else _encoder.encode(retry).decode()


def retry_from_json(text: str | None) -> Retry | None:
    """Return the retry of a stored form."""
    return None if text is None else _retry_decoder.decode(text)


def revert_to_json(revert: Revert | None) -> str | None:
    """Return the stored form of a revert that is to be completed."""
    return None if revert is None else text_as_stored(_encoder.encode(revert).decode())


def revert_from_json(text: str | None) -> Revert | None:
    """Return the revert of a stored form."""
    return None if text is None else _revert_decoder.decode(stored_text(text))


def choice_to_json(choice: ModelChoice | None) -> str | None:
    """Return the stored form of a message's model choice."""
    return None if choice is None else _encoder.encode(choice).decode()


def choice_from_json(text: str | None) -> ModelChoice | None:
    """Return a message's model choice."""
    return None if text is None else _choice_decoder.decode(text)


def text_as_stored(text: str) -> str:
    """Return JSON text in which NUL is encoded as a pair of characters."""
    if "\\u0000" not in text and MARK not in text:
        return text
    return _UNSAFE.sub(_mark, text)


def stored_text(text: str) -> str:
    """Return the original of stored JSON text."""
    return _MARKED.sub(_unmark, text) if MARK in text else text


def original_text(text: str) -> str:
    """Return the original of a text that was read out of stored JSON."""
    return _MARKED.sub(lambda found: MARK if found.group() == 2 * MARK else "\0", text)


def _mark(found: re.Match[str]) -> str:
    match found.group():
        case "\\u0000":
            return NUL_MARK
        case "\ue000":
            return MARK + MARK
        case escaped:
            return escaped


def _unmark(found: re.Match[str]) -> str:
    return "\\u0000" if found.group() == NUL_MARK else MARK
