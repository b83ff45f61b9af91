"""Results that are too large for a model: what is kept of them."""

import json

BUDGET_BYTES_MIN = 16 * 1024
BUDGET_BYTES_UNKNOWN = 64 * 1024
BYTES_PER_TOKEN = 3
MARKER_BYTES = 256


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
    """Return a result within the budget that is still JSON.

    The longest text of an object is cut, which is nearly always its output; anything else is
    quoted as a whole and cut.
    """
    if len(result_json.encode()) <= budget_bytes:
        return result_json
    value = json.loads(result_json)
    texts = (
        {name: text for name, text in value.items() if isinstance(text, str)}
        if isinstance(value, dict)
        else {}
    )
    if texts:
        longest = max(texts, key=lambda name: len(texts[name]))
        cut = _fitted(value, longest, repaired(texts[longest]), budget_bytes)
        if cut is not None:
            return cut
    return _fitted({}, "output", result_json, budget_bytes) or json.dumps({"output": ""})


def repaired(text: str) -> str:
    """Return the text as valid Unicode: halves of characters that lost the other are replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _fitted(value: dict[str, object], name: str, text: str, budget_bytes: int) -> str | None:
    """Return the object with `text` cut so that all of it fits, None if the rest is too large."""
    text_bytes = len(text.encode())
    while text_bytes > 0:
        whole = {**value, name: truncated(text, text_bytes)}
        encoded = repaired(json.dumps(whole, ensure_ascii=False))
        excess_bytes = len(encoded.encode()) - budget_bytes
        if excess_bytes <= 0:
            return encoded
        text_bytes -= excess_bytes
    return None


def _whole_characters(encoded: bytes) -> str:
    return encoded.decode(errors="ignore")
