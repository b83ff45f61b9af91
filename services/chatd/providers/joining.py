"""Merges deltas that arrived together, so that the layers above handle fewer events."""

from collections.abc import Iterable, Iterator

from chatd.models.domain.language_model import ModelEvent, ReasoningDelta, TextDelta


def joined_deltas(events: Iterable[ModelEvent]) -> Iterator[ModelEvent]:
    """Yield the events, with consecutive deltas of one block merged; the order is kept.

    Events before an error are yielded before it is raised.
    """
    first: TextDelta | ReasoningDelta | None = None
    texts: list[str] = []
    try:
        for event in events:
            # By exact type: this check runs for every token of every answer.
            if type(event) is TextDelta or type(event) is ReasoningDelta:
                if (
                    first is not None
                    and type(event) is type(first)
                    and event.block_id == first.block_id
                ):
                    texts.append(event.text)
                    continue
                if first is not None:
                    yield _joined(first, texts)
                first, texts = event, [event.text]
                continue
            if first is not None:
                yield _joined(first, texts)
                first = None
            yield event
    except Exception:
        if first is not None:
            yield _joined(first, texts)
        raise
    if first is not None:
        yield _joined(first, texts)


def _joined(first: TextDelta | ReasoningDelta, texts: list[str]) -> TextDelta | ReasoningDelta:
    return first if len(texts) == 1 else type(first)("".join(texts), first.block_id)
