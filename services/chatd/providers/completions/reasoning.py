"""The reasoning of an answer: shown while it arrives, and stored as its endpoint wants it back.

Endpoints stream reasoning as `reasoning_content` or `reasoning`; OpenRouter and similar ones repeat
it in `reasoning_details`, whose signatures and encrypted blocks must be sent back unchanged and in
order.
"""

from collections.abc import Mapping

from chatd.content.domain.truncation import repaired
from chatd.models.domain.language_model import ModelEvent, ReasoningDelta, ReasoningEnded
from chatd.providers.completions.chunks import Delta, to_json

_TEXT_FIELDS = {"reasoning.text": "text", "reasoning.summary": "summary"}

Detail = dict[str, object]


class ReasoningBuffer:
    """Collects the reasoning of one answer."""

    def __init__(self) -> None:
        self._details: list[Detail] = []
        self.is_open = False

    @property
    def is_pending(self) -> bool:
        """Return whether an end event is due before any other part begins."""
        return self.is_open or bool(self._details)

    def decode(self, delta: Delta) -> str:
        """Keep the details of a delta and return the text that it adds."""
        said = delta.reasoning_content or delta.reasoning
        text = said if isinstance(said, str) else ""
        if not isinstance(delta.reasoning_details, list):
            return text
        texts: list[str] = []
        for detail in delta.reasoning_details:
            if isinstance(detail, Mapping):
                texts.append(self._keep(detail))
        return text or "".join(texts)

    def show(self, text: str) -> ModelEvent:
        """Return the event that shows more text."""
        self.is_open = True
        return ReasoningDelta(text)

    def close(self) -> ModelEvent:
        """Return the event that ends the open reasoning, or stores one without text."""
        metadata = ""
        if self._details:
            metadata = repaired(to_json({"chat": {"reasoning_details": self._details}}))
        self._details = []
        self.is_open = False
        return ReasoningEnded(metadata)

    def _keep(self, raw: Mapping[object, object]) -> str:
        """Append a detail, or merge it into the one that it continues; return its text."""
        detail: Detail = {
            str(name): value
            for name, value in raw.items()
            if value is not None and isinstance(value, str | int | float)
        }
        field = _TEXT_FIELDS.get(str(detail.get("type")))
        if field is None:
            if detail:
                self._details.append(detail)
            return ""
        text = str(detail.get(field, ""))
        if self._details and _continues(self._details[-1], detail):
            last = self._details[-1]
            self._details[-1] = {**last, **detail, field: f"{last.get(field, '')}{text}"}
        else:
            self._details.append({**detail, field: text})
        return text


def _continues(last: Detail, detail: Detail) -> bool:
    return (
        last.get("type") == detail.get("type")
        and last.get("index") == detail.get("index")
        and ("id" not in last or "id" not in detail or last["id"] == detail["id"])
        and "signature" not in last
    )
