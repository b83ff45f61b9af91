import json
from pathlib import Path

import pytest

from parley.testing.llm_mock import Recording, RecordingUnreadable, read_recording
from parley.testing.llm_mock.playback.recording import RecordingQueue


def recording(path: str, body: bytes = b"") -> Recording:
    return Recording(path, 200, {"content-type": "text/event-stream"}, body)


def test_a_file_is_read_without_what_belonged_to_its_connection(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    headers = {"Content-Type": "text/event-stream", "Content-Length": "3", "Retry-After": "7"}
    raw = {"path": "/v1/messages?beta=true", "status": 429, "headers": headers, "body": "é"}
    file.write_text(json.dumps({**raw, "host": "h", "request": {"anything": 1}}))
    kept = {"content-type": "text/event-stream", "retry-after": "7"}
    expected = Recording("/v1/messages?beta=true", 429, kept, "é".encode(), "h")
    assert read_recording(file) == expected
    assert (expected.protocol, expected.is_streamed) == ("/messages", True)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"path": "/x"}', "not json", '{"path":"/","status":7,"body":""}']
)
def test_a_file_that_is_no_recording_says_so(text: str, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(text)
    with pytest.raises(RecordingUnreadable):
        read_recording(file)
    with pytest.raises(RecordingUnreadable):
        read_recording(tmp_path / "missing.json")


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n"])
def test_a_body_is_cut_after_each_event(end: bytes) -> None:
    parts = [b"data: a" + end, b"data: b" + end, b"data: c"]
    assert recording("/v1/messages", b"".join(parts)).events() == parts


def test_recordings_are_played_in_order_each_at_its_path() -> None:
    first, second, other = (
        recording("/v1/messages", b"1"),
        recording("/v1/messages?beta=true", b"2"),
        recording("/v1/responses", b"3"),
    )
    shelf = RecordingQueue((first, other, second))
    assert [shelf.take("/v1/messages") for _ in range(3)] == [first, second, None]
    assert shelf.take("/v1/responses") == other
    shelf.rewind()
    assert shelf.take("/v1/messages") == first


def test_a_path_with_another_prefix_is_served_by_its_protocol() -> None:
    recorded = recording("/api/v1/chat/completions")
    assert RecordingQueue((recorded,)).take("/v1/chat/completions") == recorded
    assert RecordingQueue((recorded,)).take("/v1/messages") is None
