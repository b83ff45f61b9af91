"""The output of running calls is joined, paced and bounded before it is numbered."""

from typing import cast

from msgspec.structs import replace

from chatd.chats.domain.chat import ChatState, Status
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import (
    CallProgress,
    ToolOutcome,
    ToolResult,
    ToolResultDelta,
)
from chatd.primitives.domain.ids import ChatId, Fence, MessageId
from chatd.streams.engine.coalescing import joined_deltas, size_of
from chatd.streams.engine.flush_timer import FlushTimer
from chatd.streams.engine.live import EPISODE_BYTES_MAX, Episode, LiveChats, LivePart
from chatd.streams.engine.live_results import (
    FLUSH_BYTES,
    REPEAT_BYTES,
    RESULTS_BYTES_MAX,
    UNSENT_BYTES_MAX,
    LiveResults,
)
from support.net.fake_flush_timer import FakeFlushTimer

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
MAKE = ToolResultDelta("c1", "execute")
TEST = ToolResultDelta("c2", "execute")


def said(text: str, of: ToolResultDelta = MAKE) -> ToolResultDelta:
    return replace(of, text=text)


def folded(shown: list[LivePart]) -> dict[str, ToolResultDelta]:
    """Return the live result of each call as a reader has it after these parts."""
    known: dict[str, ToolResultDelta] = {}
    for part in shown:
        delta = part.part
        if isinstance(delta, ToolResultDelta):
            before = known.get(delta.tool_call_id, replace(delta, text="", is_reset=False))
            known[delta.tool_call_id] = replace(joined_deltas(before, delta), is_reset=False)
    return known


class Stage:
    """One open episode whose flushes a test triggers."""

    def __init__(self) -> None:
        self.timer = FakeFlushTimer()
        self.shown: list[LivePart] = []
        self.live = LiveChats(
            lambda _, part: self.shown.append(part), flush_timer=cast(FlushTimer, self.timer)
        )
        self.episode: Episode = self.live.open(CHAT, Fence(1, 2, 1))

    def add(self, *deltas: ToolResultDelta) -> None:
        for delta in deltas:
            self.episode.add(Role.TOOL, int(delta.tool_call_id[1:]) - 1, delta)

    def flush(self, times: int = 1) -> None:
        for _ in range(times):
            self.timer.flush()

    @property
    def parts(self) -> list[tuple[int, int, object]]:
        return [(part.seq, part.part_index, part.part) for part in self.shown]


def test_deltas_of_two_calls_that_take_turns_are_joined_for_each_of_them() -> None:
    stage = Stage()
    for number in range(3):
        stage.add(said(f"a{number} "), said(f"b{number} ", TEST))
    stage.add(replace(MAKE, process_id="p1"))
    assert stage.shown == []
    stage.flush()
    assert stage.parts == [
        (1, 0, replace(MAKE, text="a0 a1 a2 ", process_id="p1")),
        (2, 1, replace(TEST, text="b0 b1 b2 ")),
    ]
    stage.flush()
    assert (len(stage.shown), stage.timer.awaited) == (2, 0)


def test_of_many_progress_reports_the_last_one_is_published() -> None:
    stage = Stage()
    for number in range(100):
        stage.add(replace(MAKE, progress=CallProgress(number, 100.0, f"step {number}")))
    stage.flush()
    last = CallProgress(99, 100.0, "step 99")
    assert stage.parts == [(1, 0, replace(MAKE, progress=last))]


def test_a_reset_discards_the_text_before_it_but_not_the_process() -> None:
    stage = Stage()
    stage.add(
        replace(MAKE, process_id="p1"), said("old"), replace(MAKE, is_reset=True), said("new")
    )
    stage.flush()
    expected = replace(MAKE, text="new", is_reset=True, process_id="p1")
    assert stage.parts == [(1, 0, expected)]


def test_calls_publish_on_average_no_more_than_the_pace_of_live_parts() -> None:
    stage = Stage()
    flushes = 400
    for _ in range(flushes):
        stage.add(said("x" * 100_000), said("y" * 300, TEST))
        stage.flush()
    published = sum(size_of(part.part) for part in stage.shown)
    assert published <= flushes * FLUSH_BYTES + 2 * RESULTS_BYTES_MAX
    assert len(stage.shown) < flushes / 4
    assert max(size_of(part.part) for part in stage.shown) <= RESULTS_BYTES_MAX + 64


def test_of_output_that_is_too_fast_a_reader_has_the_end() -> None:
    stage = Stage()
    written = ""
    for number in range(2000):
        line = f"line {number} " + "é" * 80 + "\n"
        written += line
        stage.add(said(line))
        if number % 20 == 0:
            stage.flush()
    stage.flush(200)
    (known,) = folded(stage.shown).values()
    assert written.endswith(known.text)
    assert len(known.text.encode()) >= UNSENT_BYTES_MAX - 4
    assert stage.timer.awaited == 0


def test_a_late_reader_finds_the_process_of_a_quiet_call_beside_a_loud_one() -> None:
    stage = Stage()
    stage.add(replace(TEST, process_id="quiet", text="waiting\n"))
    for number in range(4000):
        stage.add(said(f"{number:07} " * 500))
        stage.flush()
    stage.flush(100)
    kept = stage.live.parts(CHAT, 2, 1)
    assert kept[0].seq > 1
    assert sum(part.characters for part in kept) <= EPISODE_BYTES_MAX
    known = folded(list(kept))
    assert known["c2"] == replace(TEST, process_id="quiet", text="waiting\n")
    assert len(known["c1"].text) <= REPEAT_BYTES + RESULTS_BYTES_MAX
    assert known["c1"].text.endswith("0003999 ")


def test_repeating_ends_when_there_is_no_more_output() -> None:
    stage = Stage()
    for number in range(100):
        call = ToolResultDelta(f"c{number + 1}", "execute", text="z" * 30_000)
        stage.add(call)
    stage.flush(2000)
    assert stage.timer.awaited == 0


def test_a_result_ends_the_live_result_of_its_call() -> None:
    stage = Stage()
    result = ToolResult("c1", "execute", "{}", ToolOutcome.DONE)
    stage.add(said("never seen"), said("seen", TEST))
    stage.episode.add(Role.TOOL, 0, result)
    stage.add(said("too late"))
    stage.flush()
    assert stage.parts == [(1, 0, result), (2, 1, said("seen", TEST))]


def test_a_delta_of_an_episode_that_is_over_is_not_published() -> None:
    stage = Stage()
    stage.add(said("before"))
    after = stage.live.open(CHAT, Fence(2, 2, 2))
    stage.add(said("late"))
    after.add(Role.TOOL, 0, said("after"))
    stage.flush(2)
    assert [(part.generation_attempt, part.seq, part.part) for part in stage.shown] == [
        (2, 1, said("after"))
    ]


def test_an_interruption_ends_the_live_results() -> None:
    stage = Stage()
    running = ChatState(CHAT, Status.RUNNING, 5, 2, 1, MessageId(3))
    stage.live.state_changed(running)
    stage.add(said("seen"))
    stage.flush()
    stage.add(said("not seen"))
    stage.live.state_changed(ChatState(CHAT, Status.INTERRUPTING, 6, 2, 1, MessageId(3)))
    stage.add(said("nor this"))
    stage.flush(2)
    assert stage.parts == [(1, 0, said("seen"))]
    assert stage.timer.awaited == 0


def test_without_a_flush_timer_everything_is_published_at_once() -> None:
    shown: list[LivePart] = []
    episode = LiveChats(lambda _, part: shown.append(part)).open(CHAT, Fence(1, 2, 1))
    for _ in range(3):
        episode.add(Role.TOOL, 0, said("x" * 5000))
    assert [part.part for part in shown] == [said("x" * 5000)] * 3


def test_a_call_that_has_its_result_has_nothing_unsent() -> None:
    results = LiveResults()
    assert results.add(0, said("a"))
    results.end("c1")
    assert (results.has_unsent, results.add(0, said("b")), list(results.due())) == (
        False,
        False,
        [],
    )
