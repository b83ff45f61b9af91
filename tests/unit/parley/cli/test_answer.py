from typing import Any

import pytest

from parley.cli.api.events import ServerEvent
from parley.cli.chats.answer import Answer, Ending, Note, Shown, Text
from parley.cli.chats.listing import message_lines, queued_lines
from parley.cli.text import sanitized

TEXT = {"type": "text", "text": "half"}


def part(**fields: Any) -> ServerEvent:
    return ServerEvent("message_part", {"message_part": {"role": "assistant", "part": fields}})


def text(value: str) -> ServerEvent:
    return part(type="text", text=value)


def message(id_: int, *parts: dict[str, Any], role: str = "assistant") -> ServerEvent:
    return ServerEvent("message", {"message": {"id": id_, "role": role, "content": list(parts)}})


def status(value: str) -> ServerEvent:
    return ServerEvent("status", {"status": {"status": value}})


def shown(*events: ServerEvent) -> list[Shown]:
    answer = Answer()
    return [piece for event in events for piece in answer.take(event)]


def whole(pieces: list[Shown]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, Text))


def test_text_is_shown_as_it_streams_and_not_again_when_its_message_arrives() -> None:
    pieces = shown(text("hel"), text("lo"), message(1, {"type": "text", "text": "hello"}))
    assert pieces == [Text("hel"), Text("lo"), Text("\n")]


def test_what_was_not_streamed_is_shown_from_the_message() -> None:
    pieces = shown(text("hel"), message(1, {"type": "text", "text": "hello"}))
    assert whole(pieces) == "hello\n"


def test_a_message_that_a_resumed_stream_repeats_is_shown_once() -> None:
    answer = message(1, {"type": "text", "text": "hello"})
    assert whole(shown(answer, ServerEvent("history_reset", {}), answer)) == "hello\n"


def test_the_users_own_message_is_not_shown() -> None:
    assert shown(message(1, {"type": "text", "text": "hi"}, role="user")) == []


def test_a_notice_is_shown_with_its_hook() -> None:
    notice = {"type": "notice", "text": "one\ntwo", "hook_name": "policy", "event": "stop"}
    lines = ["! policy: one", "! policy: two"]
    assert shown(message(1, notice, role="system")) == [Note(line) for line in lines]
    own = Answer(shows_users=True).take(message(2, TEXT, notice, role="user"))
    assert own == [Note("> half"), *(Note(line) for line in lines)]
    listed = message_lines({"id": 3, "role": "system", "content": [notice]})
    assert list(listed) == ["--- system 3", *lines]


def test_a_message_that_no_person_sent_is_listed_with_its_sender() -> None:
    def first_line(**fields: object) -> str:
        return next(iter(message_lines({"id": 3, "role": "user", "content": [], **fields})))

    assert [first_line(origin=each) for each in ("person", None, "goal", "program", "new")] == [
        "--- user 3",
        "--- user 3",
        "--- user 3, sent by the goal",
        "--- user 3, sent by a program",
        "--- user 3, sent by new",
    ]
    queued = queued_lines({"id": 4, "content": [], "origin": "schedule"})
    assert list(queued) == ["--- queued 4, sent by a schedule"]


def test_a_notice_of_the_first_answer_is_a_line_of_its_own() -> None:
    notice = {"type": "notice", "text": "The MCP server notes is not used."}
    pieces = shown(text("hello"), message(1, {"type": "text", "text": "hello"}, notice))
    assert pieces == [Text("hello"), Text("\n"), Note("! The MCP server notes is not used.")]


def test_a_reset_preview_is_followed_by_the_new_text_on_its_own_line() -> None:
    pieces = shown(
        text("wro"),
        ServerEvent("preview_reset", {}),
        text("right"),
        message(1, {"type": "text", "text": "right"}),
    )
    assert whole(pieces) == "wro\nright\n"


def test_tools_are_noted_once_with_their_arguments_and_their_outcome() -> None:
    call = {"type": "tool-call", "tool_call_id": "c", "tool_name": "echo", "args": {"a": 1}}
    result = {"type": "tool-result", "tool_call_id": "c", "tool_name": "echo", "result": "x"}
    pieces = shown(
        part(type="tool-call", tool_call_id="c", tool_name="echo", args_delta='{"a'),
        part(**call),
        message(1, call),
        message(2, result, role="tool"),
    )
    assert pieces == [Note('o echo {"a": 1}'), Note("✓ echo")]


def running(**fields: Any) -> ServerEvent:
    return part(type="tool-result", tool_call_id="c", tool_name="execute", **fields)


def test_a_running_call_shows_its_process_its_progress_and_the_lines_it_writes() -> None:
    progress = {"progress": 1.0, "total": 4.0, "message": "downloading"}
    pieces = shown(
        running(process_id="p1"),
        running(process_id="p1", progress=progress),
        running(progress=progress, result_delta="one\ntw"),
        running(result_delta="o\n10%\r20%\nlast"),
        running(result="{}", outcome="done", is_error=False),
        running(result_delta="late\n"),
        message(2, {"type": "tool-result", "tool_call_id": "c", "result": {}}, role="tool"),
    )
    assert pieces == [
        Note("  execute runs as process p1"),
        Note("  execute 1/4 downloading"),
        Note("  | one"),
        Note("  | two"),
        Note("  | 20%"),
        Note("  | last"),
        Note("✓ execute"),
    ]


def test_output_that_is_repeated_after_a_reset_is_not_shown_again() -> None:
    pieces = shown(
        running(result_delta="one\ntwo\n"),
        running(result_reset=True, result_delta="one\ntwo\nthree\n"),
        ServerEvent("preview_reset", {}),
        running(result_delta="one\ntwo\nthree\nfour\n"),
        running(result_reset=True, result_delta="something else\n"),
    )
    lines = ("one", "two", "three", "four", "something else")
    assert pieces == [Note(f"  | {line}") for line in lines]


def test_of_many_lines_at_once_the_last_are_shown() -> None:
    pieces = shown(running(result_delta="".join(f"{number}\n" for number in range(1000))))
    assert pieces[0] == Note("  | ... 990 lines")
    assert pieces[1:] == [Note(f"  | {number}") for number in range(990, 1000)]


def test_a_failed_tool_is_marked() -> None:
    result = {"type": "tool-result", "tool_call_id": "c", "tool_name": "echo", "is_error": True}
    assert shown(message(1, result, role="tool")) == [Note("✗ echo")]


@pytest.mark.parametrize(
    "result",
    [
        {"ok": False, "error": "It ended\nwith exit code 1.", "hint": "look"},
        '{"ok": false, "error": "It ended with exit code 1."}',
        "It ended with exit code 1.",
    ],
)
def test_a_failed_tool_says_why(result: object) -> None:
    failed = {"tool_call_id": "c", "tool_name": "sh", "is_error": True, "result": result}
    assert shown(message(1, {"type": "tool-result", **failed}, role="tool")) == [
        Note("✗ sh It ended with exit code 1.")
    ]


def test_reasoning_is_not_part_of_the_answer() -> None:
    assert shown(part(type="reasoning", text="hmm")) == []


@pytest.mark.parametrize(
    ("reason", "note"),
    [
        ("length", [Note("cut: length limit reached")]),
        ("content_filter", [Note("cut: content policy of the provider")]),
        ("interrupted", [Note("cut: interrupted")]),
        ("stop", []),
        (None, []),
    ],
)
def test_an_answer_that_is_cut_says_so(reason: str | None, note: list[Note]) -> None:
    fields = {"id": 1, "role": "assistant", "finish_reason": reason}
    cut = ServerEvent("message", {"message": {**fields, "content": [TEXT]}})
    assert shown(cut) == [Text("half"), Text("\n"), *note]
    assert [line for line in message_lines(cut.data["message"]) if "cut" in line] == [
        f"({each.line})" for each in note
    ]


def test_a_retry_is_noted() -> None:
    waited = {"delay_ms": 1500, "error": {"message": "overloaded"}}
    retry = ServerEvent("retry", {"retry": waited})
    assert shown(retry) == [Note("retrying in 1.5 s: overloaded")]


@pytest.mark.parametrize("ending", list(Ending))
def test_a_turn_ends_with_its_status(ending: Ending) -> None:
    answer = Answer()
    answer.take(status("running"))
    assert answer.ending is None
    answer.take(status(ending.value))
    assert answer.ending is ending


def test_events_without_an_envelope_are_understood_too() -> None:
    answer = Answer()
    assert answer.take(ServerEvent("message_part", {"part": {"type": "text", "text": "a"}})) == [
        Text("a")
    ]
    answer.take(ServerEvent("status", {"status": "waiting"}))
    assert answer.ending is Ending.WAITING


def test_the_problem_of_a_failed_turn_is_kept() -> None:
    answer = Answer()
    answer.take(ServerEvent("error", {"error": {"message": "no model", "kind": "config"}}))
    answer.take(status("error"))
    assert (answer.ending, answer.problem) == (Ending.ERROR, "no model")


def test_text_for_a_terminal_cannot_steer_it() -> None:
    assert sanitized("a\x1b[31mb\x07\x9bc\n\td") == "a[31mbc\n\td"
    assert sanitized("rm \u202eeb-\u2066on") == "rm eb-on"
