"""Changes of a chat's state that several decisions share."""

from dataclasses import replace

from chatd.chats.domain.chat import ChatState, Status
from chatd.primitives.domain.ids import MessageId, WorkerId


def started(moved: ChatState, claimed_by: WorkerId | None) -> ChatState:
    """Return the state in which the turn of one more message runs."""
    turn = replace(grown(moved, 1), turn_id=moved.next_message_id, compactions=0)
    return running(turn, claimed_by)


def running(moved: ChatState, claimed_by: WorkerId | None) -> ChatState:
    """Return the state as running again, claimed or waiting for a sweep."""
    return replace(
        moved,
        status=Status.RUNNING,
        worker_id=claimed_by,
        # Also without a new owner: the process that ran the chat until now must stop.
        owner_epoch=moved.owner_epoch + 1,
        generation_attempt=int(claimed_by is not None),
        takeovers=0,
        retry=None,
        last_error=None,
        deadline_at=None,
        is_compaction_requested=False,
        revert=None,
    )


def released(moved: ChatState, status: Status) -> ChatState:
    """Return the state at rest: no owner, no episode."""
    return replace(
        moved,
        status=status,
        worker_id=None,
        generation_attempt=0,
        takeovers=0,
        retry=None,
        deadline_at=None,
        is_compaction_requested=False,
        revert=None,
    )


def next_episode(moved: ChatState) -> ChatState:
    """Return the state with the episode that follows new history, under the same owner."""
    return replace(moved, generation_attempt=1, takeovers=0, retry=None)


def grown(moved: ChatState, message_count: int) -> ChatState:
    """Return the state with new history of that many messages."""
    return replace(
        moved,
        history_version=moved.snapshot_version,
        next_message_id=MessageId(moved.next_message_id + message_count),
    )


def queue_changed(moved: ChatState, change: int) -> ChatState:
    """Return the state with a queue that is longer or shorter by `change`."""
    return replace(
        moved,
        queue_version=moved.snapshot_version,
        queue_length=moved.queue_length + change,
    )
