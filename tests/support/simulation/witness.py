"""What must hold at every commit, noted by somebody who sees them all."""

from collections import Counter
from dataclasses import dataclass, field

from chatd.domain.chat import ChatId, ChatState, Status
from chatd.domain.transitions import impossibility
from support.in_memory_chats import StoredChat


class Violation(AssertionError):
    """Something that must never be was."""


@dataclass(slots=True)
class Witness:
    """Sees every state that is stored, in order, and every message that users get in."""

    seen: dict[ChatId, ChatState] = field(default_factory=dict)
    taken: Counter[tuple[ChatId, str]] = field(default_factory=Counter)
    withdrawn: set[tuple[ChatId, str]] = field(default_factory=set)
    violations: list[str] = field(default_factory=list)
    commits: int = 0
    latest: list[ChatState] = field(default_factory=list)

    def took(self, chat_id: ChatId, text: str) -> None:
        """Note that a message of a user got in."""
        self.taken[chat_id, text] += 1

    def withdrew(self, chat_id: ChatId, *texts: str) -> None:
        """Note that a user took messages back."""
        self.withdrawn |= {(chat_id, text) for text in texts}

    def saw(self, chat: StoredChat) -> None:
        """Compare what is stored now with what was before."""
        state = chat.state
        before = self.seen.get(state.chat_id, state)
        if before is state:
            self.seen[state.chat_id] = state
            return
        self.commits += 1
        self.latest.append(state)
        self.seen[state.chat_id] = state
        self.require(impossibility(state) is None, f"impossible: {impossibility(state)}", state)
        grown = state.snapshot_version == before.snapshot_version + 1
        self.require(
            grown, f"version {before.snapshot_version} was not followed by its next", state
        )
        parts = max(state.history_version, state.queue_version, state.retry_version)
        self.require(parts <= state.snapshot_version, "a part is newer than the whole", state)
        is_monotone = (
            state.history_version >= before.history_version
            and state.queue_version >= before.queue_version
            and state.owner_epoch >= before.owner_epoch
            and state.next_message_id >= before.next_message_id
        )
        self.require(is_monotone, "a version went back", state)
        is_handed_on = state.worker_id not in (None, before.worker_id)
        is_new_epoch = state.owner_epoch > before.owner_epoch
        self.require(not is_handed_on or is_new_epoch, "two owners share an epoch", state)
        is_episode = (state.history_version, state.owner_epoch) == (
            before.history_version,
            before.owner_epoch,
        )
        is_at_rest = state.status not in (Status.RUNNING, Status.INTERRUPTING)
        is_attempt_grown = state.generation_attempt >= before.generation_attempt
        self.require(not is_episode or is_at_rest or is_attempt_grown, "an attempt ran back", state)

    def require(self, is_true: bool, problem: str, state: ChatState) -> None:
        """Note a problem unless something is true."""
        if not is_true:
            self.violations.append(f"{problem}: {state}")
