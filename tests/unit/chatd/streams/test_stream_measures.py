import re

from chatd.primitives.domain.ids import ChatId
from chatd.streams.rpc.drops import Drops
from chatd.streams.rpc.metrics import measure_streams
from parley.clock import FakeClock
from parley.telemetry import InMemoryTelemetry


class Followed:
    """Two chats that somebody follows."""

    def __init__(self, drops: Drops) -> None:
        self.drops = drops

    def __len__(self) -> int:
        return 2


def test_what_slow_readers_lost_is_shown_to_whoever_looks() -> None:
    memory, clock = InMemoryTelemetry("chatd"), FakeClock()
    chats, feeds = Drops(clock), Drops(clock)
    measure_streams(memory.telemetry.meter, Followed(chats), feeds)
    chats.note(ChatId("c"), 7)
    chats.note(ChatId("d"), 3)
    feeds.note(ChatId(""), 1)

    shown = [
        (re.split("[{ ]", line)[0], 'stream="feed"' in line, line.split()[-1])
        for line in memory.telemetry.metrics_text().splitlines()
        if line.startswith("chat_stream_")
    ]

    assert sorted(shown) == [
        ("chat_stream_dropped_events_total", False, "10.0"),
        ("chat_stream_dropped_events_total", True, "1.0"),
        ("chat_stream_dropped_readers_total", False, "2.0"),
        ("chat_stream_dropped_readers_total", True, "1.0"),
        ("chat_stream_followed_chats", False, "2.0"),
    ]
