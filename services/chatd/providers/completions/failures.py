"""Errors inside a stream that started well, in all formats that endpoints use."""

from collections.abc import Mapping

from chatd.content.domain.truncation import repaired
from chatd.providers.completions.chunks import BODY_BYTES_MAX, Choice, Chunk, to_json
from chatd.providers.wire import Failure

TEXT_CHARACTERS_MAX = 2000

# Finish reasons that are failures of the endpoint.
BROKEN_REASONS = {
    "error": "the endpoint gave up with a server error",
    "network_error": "the endpoint gave up with a server error: network_error",
    "insufficient_system_resource": "the endpoint is overloaded: insufficient_system_resource",
    "abort": "the endpoint gave up with a server error: the request was aborted",
}


def failure_in(chunk: Chunk, choice: Choice | None, data: bytes) -> Failure | None:
    """Return the error that a chunk reports; None if it reports none."""
    error = chunk.error or (choice.error if choice is not None else None)
    if not error and chunk.choices is None:
        error = _bare_error(chunk)
    if error:
        return Failure(_text(error), _status_code(error), body=data[:BODY_BYTES_MAX])
    reason = (choice.finish_reason or "").lower() if choice is not None else ""
    if reason in BROKEN_REASONS:
        return Failure(BROKEN_REASONS[reason], body=data[:BODY_BYTES_MAX])
    return None


def _bare_error(chunk: Chunk) -> object:
    """Return an error whose fields are at the top level of the chunk."""
    message = chunk.message or chunk.detail
    return message and {"message": message, "code": chunk.code, "type": chunk.type}


def _text(error: object) -> str:
    """Return all texts of an error: some endpoints put the essential one into code or metadata."""
    match error:
        case str():
            said: list[object] = [error]
        case Mapping():
            metadata = error.get("metadata")
            raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
            said = [error.get("message"), raw, error.get("type"), error.get("code")]
        case _:
            said = [error]
    words = [each if isinstance(each, str) else to_json(each) for each in said if each]
    return repaired("; ".join(dict.fromkeys(words))[:TEXT_CHARACTERS_MAX]) or "unknown error"


def _status_code(error: object) -> int:
    if not isinstance(error, Mapping):
        return 0
    for name in ("code", "status", "status_code"):
        code = error.get(name)
        if isinstance(code, str) and code.isascii() and code.isdigit() and len(code) == 3:
            code = int(code)
        if isinstance(code, int) and 400 <= code <= 599:
            return code
    return 0
