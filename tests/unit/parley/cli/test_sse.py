from parley.cli.api.events import ServerEvent, events


def test_an_event_has_a_type_a_cursor_and_data() -> None:
    lines = [b": hello\n", b"retry: 2000\n", b"\n", b"id: 1.2\n", b"event: status\n"]
    lines += [b'data: {"status": "running"}\n', b"\n"]
    assert list(events(lines)) == [ServerEvent("status", {"status": "running"}, "1.2")]


def test_the_cursor_stays_until_it_changes() -> None:
    lines = [b"id: 7\n", b"data: {}\n", b"\n", b"event: status\r\n", b"data: {}\r\n", b"\r\n"]
    assert list(events(lines)) == [ServerEvent("message", {}, "7"), ServerEvent("status", {}, "7")]


def test_data_over_several_lines_is_one_value() -> None:
    assert list(events([b'data: {"a":\n', b"data: 1}\n", b"\n"])) == [
        ServerEvent("message", {"a": 1})
    ]


def test_an_event_that_is_cut_off_is_dropped() -> None:
    assert list(events([b'data: {"a": 1}\n'])) == []


def test_data_that_is_no_json_object_counts_as_empty() -> None:
    assert list(events([b"data: [1]\n", b"\n", b"data: {\n", b"\n"])) == [
        ServerEvent("message", {}),
        ServerEvent("message", {}),
    ]
