"""Truncation of texts and tool results that are too large for a model."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

LEFT_OUT = "\n[...]\n"

BUDGET_BYTES_MIN = 16 * 1024
BUDGET_BYTES_UNKNOWN = 64 * 1024
BYTES_PER_TOKEN = 3
MARKER_BYTES = 256
MEDIA_TYPES = ("image", "audio", "resource")
#: In results shown to users, base64 data longer than this is left out.
SHOWN_BYTES_MAX = 32 * 1024
# Within a string the quotation marks are escaped, so this matches only a field of the result.
_LARGE_BYTES = re.compile(rf'"(data|blob)": ?"([A-Za-z0-9+/=_-]{{{SHOWN_BYTES_MAX},}})"', re.ASCII)


def excerpt(text: str, characters_max: int) -> str:
    """Return at most that many characters: two thirds from the head, one from the tail."""
    if len(text) <= characters_max:
        return text
    kept = characters_max - len(LEFT_OUT)
    if kept <= 1:
        return text[:characters_max]
    tail = kept // 3
    return f"{text[: kept - tail]}{LEFT_OUT}{text[len(text) - tail :]}"


def result_budget_bytes(context_limit_tokens: int) -> int:
    """Return the size limit of one result: a third of the context window, if that is known."""
    if context_limit_tokens <= 0:
        return BUDGET_BYTES_UNKNOWN
    return max(BUDGET_BYTES_MIN, context_limit_tokens // 3 * BYTES_PER_TOKEN)


def truncated(text: str, budget_bytes: int) -> str:
    """Return at most `budget_bytes` of a text: two thirds from its head, one from its tail."""
    encoded = text.encode()
    if len(encoded) <= budget_bytes:
        return text
    kept_bytes = budget_bytes - MARKER_BYTES
    if kept_bytes <= 0:
        return _whole_characters(encoded[:budget_bytes])
    head_bytes = kept_bytes * 2 // 3
    head = _whole_characters(encoded[:head_bytes])
    tail = _whole_characters(encoded[len(encoded) - (kept_bytes - head_bytes) :])
    removed_bytes = len(encoded) - len(head.encode()) - len(tail.encode())
    return f"{head}\n[... {removed_bytes} bytes were left out here ...]\n{tail}"


def truncated_json(result_json: str, budget_bytes: int) -> str:
    """Return a result that fits the budget and is valid JSON; bytes of images do not count.

    The longest string in it, nearly always the output, is truncated. If that is not enough, the
    whole result is encoded as a string and truncated.
    """
    if len(result_json.encode()) <= budget_bytes:
        return result_json
    value = json.loads(result_json)
    media = _media_in(value)
    budget_bytes += sum(len(each["data"]) for each in media)
    if len(result_json.encode()) <= budget_bytes:
        return result_json
    longest = max(_texts_in(value), key=lambda text: len(text.value), default=None)
    if longest is not None:
        cut = _fitted(value, longest, budget_bytes)
        if cut is not None:
            return cut
    for each in media:
        each["data"] = ""
    quoted = {"output": repaired(result_json if not media else json.dumps(value))}
    (whole,) = _texts_in(quoted)
    return _fitted(quoted, whole, budget_bytes) or json.dumps({"output": ""})


def without_large_bytes(result_json: str) -> str:
    """Return a result as shown to users and clients: large images are replaced by their size.

    Models get the images. Streams and history pages contain everything that is shown, and one large
    image would exceed their size limits.
    """
    if len(result_json) <= SHOWN_BYTES_MAX:
        return result_json
    return _LARGE_BYTES.sub(
        lambda found: f'"{found[1]}": "", "omitted_bytes": {len(found[2]) * 3 // 4}', result_json
    )


def repaired(text: str) -> str:
    """Return the text as valid Unicode: unpaired surrogates are replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


@dataclass(frozen=True, slots=True)
class _Text:
    """A string within a JSON value, and its position."""

    holder: Any
    place: Any
    value: str


def _media_in(value: Any) -> list[dict[str, Any]]:
    """Return the parts with base64 data, in the format of MCP results."""
    parts = value.get("content") if isinstance(value, dict) else None
    return [
        part
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, dict)
        and part.get("type") in MEDIA_TYPES
        and isinstance(part.get("data"), str)
    ]


def _texts_in(value: Any) -> Iterator[_Text]:
    """Yield every string with its position, except the bytes of media."""
    holders = [value]
    while holders:
        holder = holders.pop()
        if isinstance(holder, dict):
            is_media = holder.get("type") in MEDIA_TYPES
            inside = [item for item in holder.items() if not (is_media and item[0] == "data")]
        elif isinstance(holder, list):
            inside = list(enumerate(holder))
        else:
            continue
        for place, each in inside:
            if isinstance(each, str):
                yield _Text(holder, place, each)
            else:
                holders.append(each)


def _fitted(value: Any, text: _Text, budget_bytes: int) -> str | None:
    """Return the value with `text` cut so that it fits, None if the rest is too large."""
    clean = repaired(text.value)
    text_bytes = len(clean.encode())
    while text_bytes > 0:
        text.holder[text.place] = truncated(clean, text_bytes)
        encoded = repaired(json.dumps(value, ensure_ascii=False))
        excess_bytes = len(encoded.encode()) - budget_bytes
        if excess_bytes <= 0:
            return encoded
        text_bytes -= excess_bytes
    text.holder[text.place] = text.value
    return None


def _whole_characters(encoded: bytes) -> str:
    return encoded.decode(errors="ignore")
