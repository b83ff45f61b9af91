"""Somebody who looks at everything now and then: what should have happened by now, and has not."""

from collections.abc import Callable, Iterable

from chatd.chats.domain.chat import ChatState, Status
from chatd.primitives.domain.ids import WorkerId
from parley.clock import Clock
from support.simulation.database import SimulatedDatabase
from support.simulation.node import Node
from support.simulation.witness import Commit

OWNED = (Status.RUNNING, Status.INTERRUPTING)
EVERY_S = 2.5
TOLD_WITHIN_S = 0.8
CRASH_ENDED_WITHIN_S = 3.0
STARTED_WITHIN_S = 14.0  # Two renewals find a chat without a runner.
STOPPED_WITHIN_S = 9.5  # One renewal tells of an interruption, and settling calls takes seconds.
CONTACT_S = 7.9  # How long a worker must have been in contact before it judges others.


class Inspector:
    """Finds what processes forgot although nothing hindered them."""

    def __init__(
        self, database: SimulatedDatabase, nodes: Callable[[], Iterable[Node]], clock: Clock
    ) -> None:
        self._database = database
        self._witness = database.witness
        self._nodes = nodes
        self._clock = clock
        self._witness.leaving.append(self._look)
        self._witness.watchers.append(self._look_at_takeover)

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await self._clock.sleep(EVERY_S)
            for commit in self._witness.newest.values():
                self._look(commit)

    def _look(self, commit: Commit) -> None:
        if self._database.is_down:
            return
        author = commit.author
        writer = None if author is None else self._able(author.worker_id)
        if writer is not None:
            self._look_at_writer(commit, writer)
        owner = self._able(commit.state.worker_id)
        if owner is not None and commit.state.status in OWNED:
            self._look_at_owner(commit, owner)

    def _look_at_writer(self, commit: Commit, writer: Node) -> None:
        state = commit.state
        if self._undisturbed_s(writer, commit.at_s) > TOLD_WITHIN_S:
            is_status_sent = writer.has_told(state.chat_id, state.snapshot_version)
            self._require(is_status_sent, f"{writer.name} keeps its commit for itself", state)

    def _look_at_owner(self, commit: Commit, owner: Node) -> None:
        state = commit.state
        undisturbed_s = self._undisturbed_s(owner, commit.at_s)
        if undisturbed_s > STARTED_WITHIN_S:
            is_run = owner.worker.mailbox(state.chat_id) is not None
            self._require(is_run, f"{owner.name} owns a chat and does not run it", state)
        if undisturbed_s > STOPPED_WITHIN_S:
            is_going_on = state.status is not Status.INTERRUPTING
            self._require(is_going_on, f"{owner.name} does not stop", state)
        crashed_at_s = owner.crashed_at_s.get(state.chat_id, -1.0)
        if crashed_at_s > commit.at_s:
            crashed_s = self._clock.monotonic() - crashed_at_s
            is_left = CRASH_ENDED_WITHIN_S < crashed_s < self._undisturbed_s(owner, 0.0)
            self._require(not is_left, f"{owner.name} left a crashed turn as it was", state)

    def _look_at_takeover(self, before: ChatState, after: ChatState) -> None:
        """Check that nobody is held for dead right after an outage that made all look dead."""
        is_swept = after.history_version == before.history_version
        row = self._database.workers.rows.get(before.worker_id or WorkerId(""))
        is_proven = row is not None and row.has_ended
        is_takeover = is_swept and after.takeovers > before.takeovers and not is_proven
        up_for_s = self._clock.monotonic() - self._database.long_outage_ended_s
        self._require(not is_takeover or up_for_s > CONTACT_S, "the living were judged", after)

    def _able(self, worker_id: WorkerId | None) -> Node | None:
        found = (node for node in self._nodes() if node.worker_id == worker_id)
        return next((node for node in found if node.is_able), None)

    def _undisturbed_s(self, node: Node, since_s: float) -> float:
        """Return for how long nothing hindered a process after a moment."""
        host = node.host
        disturbed_at_s = max(host.resumed_at_s, host.troubled_at_s, self._database.up_since_s)
        return self._clock.monotonic() - max(since_s, disturbed_at_s)

    def _require(self, is_true: bool, problem: str, state: ChatState) -> None:
        self._witness.require(is_true, problem, state)
