from typing import Any

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, event, fake_api

PROCESS = "00000000-0000-0000-0000-0000000000b1"
TIMED_OUT = 124


def written(cursor: int, text: str) -> bytes:
    told = {"cursor": cursor, "text": text, "next_cursor": cursor + len(text.encode())}
    data = {"type": "process_output", "process_output": {"process_id": PROCESS, **told}}
    return event("process_output", data, "")


def ended(**told: Any) -> bytes:
    data = {"process": None, "error": None, "process_id": PROCESS, **told}
    return event("process_ended", {"type": "process_ended", "process_ended": data}, "")


def output(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("output", "chat-1", PROCESS, *arguments), Invocation(environment, "parley"))


def test_output_is_printed_across_a_lost_connection_and_the_exit_code_is_the_process_s(
    capsys: pytest.CaptureFixture[str],
) -> None:
    exited = {"state": "exited", "exit": {"shell_exit_code": 3}}
    with fake_api(
        Answer(stream=written(5, "zwei ü\n") + written(13, "\x1b[32mthree\x1b[0m\n")),
        Answer(stream=written(28, "four\n") + ended(process=exited)),
    ) as api:
        assert output(api, "--from", "5") == 3
    assert capsys.readouterr().out == "zwei ü\n\x1b[32mthree\x1b[0m\nfour\n"
    path = "/api/v1/chats/chat-1/events?types=process_output,process_ended&processes="
    assert [each.path for each in api.requests] == [f"{path}{PROCESS}:5", f"{path}{PROCESS}:28"]


def test_a_process_that_cannot_be_followed_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    error = {"code": "PROCESS_NOT_FOUND", "message": "There is no such process."}
    with fake_api(Answer(stream=ended(error=error))) as api:
        assert output(api) == 1
    assert "There is no such process." in capsys.readouterr().err


def test_a_time_that_is_over_says_where_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(Answer(stream=written(0, "one\n"), stays_open=True)) as api:
        assert output(api, "--timeout", "0.3") == TIMED_OUT
    assert f"go on with: parley output chat-1 {PROCESS} --from 4" in capsys.readouterr().err
