"""`parley replay`, as it is called."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.chatd.providers.recordings import Recording, recordings
from support.cli.recorded_answers import said_by

FOLDERS = ("anthropic-messages", "openai-chat", "openai-compatible", "openai-responses")
STREAM = {"content-type": "text/event-stream"}
CHUNK = '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[%s]}'
WITHOUT_USAGE = {
    "input_tokens": 0,
    "output_tokens": 0,
    "reasoning_tokens": 0,
    "cache_read_tokens": 0,
    "cache_write_tokens": 0,
}


def replayed(*files: Path) -> tuple[int, list[dict[str, Any]], str]:
    """Return exit code, lines and errors of a call."""
    ended = subprocess.run(
        [sys.executable, "-m", "parley.cli", "replay", *map(str, files)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return ended.returncode, [json.loads(line) for line in ended.stdout.splitlines()], ended.stderr


def written(directory: Path, name: str, **changes: object) -> Path:
    deltas = [
        '{"index":0,"delta":{"reasoning_content":"hm"}}',
        '{"index":0,"delta":{"content":"naïve"}}',
        '{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1",'
        '"function":{"name":"add","arguments":"{\\"a\\":[1,2]}"}}]}}',
        '{"index":0,"delta":{},"finish_reason":"tool_calls"}',
    ]
    events = [CHUNK % delta for delta in deltas]
    recording = {
        "host": "api.example.org",
        "path": "/api/v1/chat/completions",
        "status": 200,
        "headers": STREAM,
        "request": {},
        "body": "".join(f"data: {data}\n\n" for data in (*events, "[DONE]")),
        **changes,
    }
    file = directory / name
    file.write_text(json.dumps(recording))
    return file


def test_an_answer_is_told_as_one_object(tmp_path: Path) -> None:
    file = written(tmp_path, "a.json")
    code, (line,), errors = replayed(file)
    assert (code, errors) == (0, "")
    assert line.pop("events") > 3
    assert line == {
        "file": str(file),
        "text": "naïve",
        "reasoning": "hm",
        "tool_calls": [{"id": "call_1", "name": "add", "arguments": {"a": [1, 2]}}],
        "provider_tool_calls": [],
        "sources": [],
        "usage": WITHOUT_USAGE,
        "finish_reason": "tool_calls",
        "error": None,
    }


def test_an_error_that_was_recorded_is_no_error_of_the_command(tmp_path: Path) -> None:
    body = '{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}'
    json_type = {"content-type": "application/json"}
    file = written(tmp_path, "a.json", status=429, headers=json_type, body=body)
    code, (line,), errors = replayed(file)
    assert (code, errors, line["finish_reason"]) == (0, "", None)
    error = line["error"]
    assert (error["kind"], error["retryable"], error["status_code"]) == ("rate_limit", True, 429)


def test_what_came_before_a_cut_is_told_with_the_error(tmp_path: Path) -> None:
    file = written(tmp_path, "a.json")
    whole = json.loads(file.read_text())
    file.write_text(json.dumps({**whole, "body": whole["body"].partition('{"tool_calls"')[0]}))
    code, (line,), errors = replayed(file)
    assert (code, errors, line["text"], line["finish_reason"]) == (0, "", "naïve", None)
    assert line["error"]["retryable"]


def test_a_file_that_is_no_recording_has_a_line_too(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("not json")
    elsewhere = written(tmp_path, "b.json", path="/v1/embeddings")
    right = written(tmp_path, "c.json")
    code, lines, errors = replayed(broken, tmp_path / "missing.json", elsewhere, right)
    assert (code, errors) == (1, "")
    kinds = [None if line["error"] is None else line["error"]["kind"] for line in lines]
    assert kinds == ["config", "config", "config", None]


def test_every_recording_is_read_as_its_events_say() -> None:
    found = [each for folder in FOLDERS for each in recordings(folder)]
    if not found:
        pytest.skip("no recordings beside the clone")
    code, lines, errors = replayed(*(each.path for each in found))
    assert (code, errors, len(lines)) == (0, "", len(found))
    wrong = {
        recording.name: line
        for recording, line in zip(found, lines, strict=True)
        if _told(line, recording) != _expected(recording)
    }
    assert wrong == {}


def _told(line: dict[str, Any], recording: Recording) -> dict[str, Any]:
    if not _is_answer(recording):
        return {"status_code": line["error"]["status_code"]}
    ids = sorted(call["id"] for call in line["provider_tool_calls"])
    names = ("text", "reasoning", "tool_calls", "usage", "finish_reason", "error")
    return {"provider_call_ids": ids, **{name: line[name] for name in names}}


def _expected(recording: Recording) -> dict[str, Any]:
    if not _is_answer(recording):
        return {"status_code": 400 if recording.status == 200 else recording.status}
    return {**said_by(recording), "error": None}


def _is_answer(recording: Recording) -> bool:
    return recording.status == 200 and '"error":{' not in recording.body
