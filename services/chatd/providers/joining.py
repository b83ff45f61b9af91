"""Joining deltas that arrived together, so that the layers above handle one instead of many."""

from collections.abc import Iterable, Iterator

from chatd.domain.model import ModelEvent, ReasoningDelta, TextDelta


class _Run:
    """Deltas of one block that follow one another."""

    def __init__(self, first: TextDelta | ReasoningDelta) -> None:
        self._first = first
        self._texts = [first.text]

    def takes(self, event: ModelEvent) -> bool:
        """Take a delta of the same block; leave anything else."""
        if not isinstance(event, type(self._first)) or event.block_id != self._first.block_id:
            return False
        self._texts.append(event.text)
        return True

    def joined(self) -> TextDelta | ReasoningDelta:
        """Return all of them as one."""
        if len(self._texts) == 1:
            return self._first
        return type(self._first)("".join(self._texts), self._first.block_id)


def joined_deltas(events: Iterable[ModelEvent]) -> Iterator[ModelEvent]:
    """Yield the events, consecutive deltas of one block as one; nothing else moves.

    What came before an error is yielded before it is raised.
    """
    run: _Run | None = None
    try:
        for event in events:
            if run is not None:
                if run.takes(event):
                    continue
                yield run.joined()
                run = None
            if isinstance(event, TextDelta | ReasoningDelta):
                run = _Run(event)
            else:
                yield event
    except Exception:
        if run is not None:
            yield run.joined()
        raise
    if run is not None:
        yield run.joined()
