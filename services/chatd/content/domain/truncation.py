"""Results that are too large for a model: what is kept of them."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

BUDGET_BYTES_MIN = 16 * 1024
BUDGET_BYTES_UNKNOWN = 64 * 1024
BYTES_PER_TOKEN = 3
MARKER_BYTES = 256
MEDIA_TYPES = ("image", "audio", "resource")
#: Of a result that is shown, bytes in base64 that are longer are left out.
SHOWN_BYTES_MAX = 32 * 1024
# Inside of a text the quotation marks are escaped, so this is a field of the result itself.
_LARGE_BYTES = re.compile(rf'"(data|blob)": ?"([A-Za-z0-9+/=_-]{{{SHOWN_BYTES_MAX},}})"', re.ASCII)


def result_budget_bytes(context_limit_tokens: int) -> int:
    """Return how large one result may be: a third of the window, as far as that is known."""
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
    """Return a result within the budget that is still JSON; bytes of pictures do not count.

    The longest text in it is cut, wherever it is, which is nearly always the output; what cannot
    be made to fit so is quoted as a whole and cut.
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
    """Return a result as people and programs are shown it: of large pictures only their size.

    Models get them. Streams and pages of a history carry everything that is shown, and one large
    picture would be more than they can.
    """
    if len(result_json) <= SHOWN_BYTES_MAX:
        return result_json
    return _LARGE_BYTES.sub(
        lambda found: f'"{found[1]}": "", "omitted_bytes": {len(found[2]) * 3 // 4}', result_json
    )


def repaired(text: str) -> str:
    """Return the text as valid Unicode: halves of characters that lost the other are replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


@dataclass(frozen=True, slots=True)
class _Text:
    """A text and where it is."""

    holder: Any
    place: Any
    value: str


def _media_in(value: Any) -> list[dict[str, Any]]:
    """Return the parts that are bytes in base64, as results of MCP servers carry them."""
    parts = value.get("content") if isinstance(value, dict) else None
    return [
        part
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, dict)
        and part.get("type") in MEDIA_TYPES
        and isinstance(part.get("data"), str)
    ]


def _texts_in(value: Any) -> Iterator[_Text]:
    """Yield every text with its place, the bytes of media left out."""
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
    """Return the value with `text` cut so that all of it fits, None if the rest is too large."""
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
