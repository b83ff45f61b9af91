"""Members of processes are counted seldom where that takes long."""

from collections import Counter
from datetime import timedelta

from parley.clock import FakeClock
from toolrunner.journal.records import ProcessRecord, ProcessState
from toolrunner.primitives.domain import ChatId, ProcessId, WorkspaceId
from toolrunner.processes.group_sizes import SHARE, GroupSizes
from toolrunner.processes.rpc.convert import Presenter


class Counting:
    """Counts that take a while, each with one more process."""

    def __init__(self, clock: FakeClock, takes_s: float) -> None:
        self.clock, self.takes_s, self.counts = clock, takes_s, 0

    def __call__(self) -> Counter[int]:
        self.clock.advance(self.takes_s)
        self.counts += 1
        return Counter({1: self.counts})


def test_a_count_that_took_long_is_used_again_until_it_took_a_small_part_of_the_time() -> None:
    clock = FakeClock()
    counting = Counting(clock, takes_s=2.0)
    group_sizes = GroupSizes(counting, clock)
    assert [group_sizes()[1] for _ in range(100)] == [1] * 100
    clock.advance(2.0 * (SHARE - 1) - 0.5)
    assert group_sizes()[1] == 1
    clock.advance(0.5)
    assert [group_sizes()[1] for _ in range(100)] == [2] * 100
    assert counting.counts == 2


def test_a_count_that_took_no_time_is_not_used_again() -> None:
    clock = FakeClock()
    group_sizes = GroupSizes(Counting(clock, takes_s=0.0), clock)
    assert [group_sizes()[1] for _ in range(3)] == [1, 2, 3]


def test_a_process_that_is_newer_than_the_count_has_one_member() -> None:
    clock = FakeClock()
    presenter = Presenter(GroupSizes(Counting(clock, takes_s=2.0), clock))
    record = ProcessRecord(
        process_id=ProcessId("new"),
        workspace_id=WorkspaceId("one"),
        chat_id=ChatId("chat"),
        request_id="request",
        command="true",
        workdir="/",
        is_background=False,
        state=ProcessState.RUNNING,
        started_at=clock.now() - timedelta(seconds=1),
        pid=7,
    )
    assert presenter.present(record).running_members == 1
