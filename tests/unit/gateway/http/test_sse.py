import msgspec
import pytest

from gateway.http import sse
from parley.cli.api.events import ServerEvent, events


def test_a_frame_has_id_type_and_one_line_of_json() -> None:
    assert sse.frame("status", {"text": "a\nb"}, cursor="1.2") == (
        b'id: 1.2\nevent: status\ndata: {"text":"a\\nb"}\n\n'
    )


def test_without_a_cursor_the_reader_keeps_the_one_it_has() -> None:
    assert sse.frame("bye", {}) == b"event: bye\ndata: {}\n\n"


def test_a_resync_makes_the_reader_forget_its_cursor() -> None:
    assert (
        sse.resync({"chat_id": "c"})
        == b'id\nevent: resync\ndata: {"type":"resync","chat_id":"c"}\n\n'
    )


def test_the_opening_tells_when_to_come_back_and_then_comments() -> None:
    assert sse.OPENING == b"retry: 2000\n: connected\n\n"


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "a\0b"])
def test_nothing_breaks_out_of_its_line(text: str) -> None:
    with pytest.raises(ValueError, match="line"):
        sse.frame("status", {}, cursor=text)
    with pytest.raises(ValueError, match="line"):
        sse.frame(text, {})


def test_raw_json_over_several_lines_is_refused() -> None:
    with pytest.raises(ValueError, match="one line"):
        sse.frame("status", {"raw": msgspec.Raw(b"[1,\n2]")})


def test_the_command_line_reads_what_is_framed() -> None:
    sent = (
        sse.OPENING
        + sse.frame("status", {"status": "waiting"}, cursor="1.2")
        + sse.HEARTBEAT
        + sse.resync({"chat_id": "c"})
    )

    assert list(events(line + b"\n" for line in sent.split(b"\n"))) == [
        ServerEvent("status", {"status": "waiting"}, "1.2"),
        ServerEvent("resync", {"type": "resync", "chat_id": "c"}, ""),
    ]
