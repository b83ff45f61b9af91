"""`docs/events.md` names every event with the fields that it has, and no other."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.api.events import CHAT_EVENTS, FEED_EVENTS, event_to_json, feed_event_to_json
from gateway.api.json_output import to_json
from gateway.http import sse
from parley.api.chat.v1 import event_pb2, message_pb2
from support.rpc.filled_protos import filled

DOCUMENT = (Path(__file__).resolve().parent.parent.parent / "docs" / "events.md").read_text()
CHAT, FEED = DOCUMENT.split("## Events of a chat\n")[1].split("## Events of the feed\n")
FEED, PARTS = FEED.split("## Parts\n")
SECTION = re.compile(r"^### `(\w+)`\n(.*?)(?=^### |\Z)", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^```json\n(.*?)^```", re.MULTILINE | re.DOTALL)
ABOUT = {"chat_id": "c"}
ENDINGS = {"resync": sse.resync, "bye": sse.bye}


def examples_of(part: str) -> list[tuple[str, Any]]:
    return [
        (name, json.loads(example))
        for name, section in SECTION.findall(part)
        for example in EXAMPLE.findall(section)
    ]


def name_of(user_id: str) -> str:
    return f"Name of {user_id}"


def sent(kind: str) -> Any:
    """Return the document of an event with every field that it can have."""
    event = event_pb2.ChatEvent(cursor="x")
    payload = getattr(event, kind)
    filled(payload).SetInParent()
    shown = event_to_json("c", event, name_of)
    assert shown is not None
    return json.loads(msgspec.json.encode(shown[1]))


def sent_to_feed(kind: str) -> Any:
    change = event_pb2.FeedChange.Value(f"FEED_CHANGE_{kind.upper()}")
    event = event_pb2.FeedEvent(cursor="x", change=change)
    filled(event.chat)
    filled(event.break_glass)
    return json.loads(msgspec.json.encode(feed_event_to_json(event, name_of)[1]))


def document_of(frame: bytes) -> Any:
    return json.loads(frame.partition(b"data: ")[2])


def differences(example: Any, code: Any, at: str = "") -> list[str]:
    """Return where an example has other fields than the code; null may stand for anything."""
    if isinstance(example, dict) and isinstance(code, dict):
        if at.endswith(("/labels", "/args", "/input_schema")):
            return []
        odd = [f"{at}/{name}" for name in sorted(set(example) ^ set(code))]
        both = sorted(set(example) & set(code))
        return odd + [
            each for name in both for each in differences(example[name], code[name], f"{at}/{name}")
        ]
    if isinstance(example, list) and isinstance(code, list):
        return [each for item in example for each in differences(item, code[0], f"{at}/0")]
    if example is None or code is None or type(example) is type(code):
        return []
    return [at]


def test_every_event_of_a_chat_is_documented_and_no_other() -> None:
    assert {name for name, _ in examples_of(CHAT)} == {*CHAT_EVENTS, *sse.ENDING_EVENTS}


def test_every_event_of_the_feed_is_documented_and_no_other() -> None:
    assert [name for name, _ in examples_of(FEED)] == [*FEED_ORDER]
    assert set(FEED_ORDER) == set(FEED_EVENTS)


FEED_ORDER = ("created", "updated", "deleted", "break_glass")


@pytest.mark.parametrize(
    ("name", "example"), examples_of(CHAT), ids=[name for name, _ in examples_of(CHAT)]
)
def test_an_example_of_a_chat_has_the_fields_that_are_sent(name: str, example: Any) -> None:
    if name in ENDINGS:
        code = document_of(ENDINGS[name](ABOUT))
    elif "code" in example.get("error", {}):
        code = document_of(sse.permission_revoked(ABOUT))
    else:
        code = sent(name)
    if name == "message_part":
        # A part has only the fields that it has; all that it can have are in the table of parts.
        shown = example["message_part"]["part"]
        (part,) = [each for each in every_part() if each["type"] == shown["type"]]
        code["message_part"]["part"] = {
            field: part[field] for field in part if field in shown or field == "type"
        }

    assert example["type"] == name
    assert differences(example, code) == []


@pytest.mark.parametrize(("name", "example"), examples_of(FEED), ids=FEED_ORDER)
def test_an_example_of_the_feed_has_the_fields_that_are_sent(name: str, example: Any) -> None:
    assert example["type"] == name
    assert differences(example, sent_to_feed(name)) == []


def test_every_part_is_documented_with_the_fields_that_it_can_have() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| (.*) \|$", PARTS, re.MULTILINE)
    documented = {
        name: {"type", *re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", fields))}
        for name, fields in rows[1:]
    }

    assert documented == {part["type"]: set(part) for part in every_part()}


def every_part() -> list[Any]:
    """Return each kind of part with every field that it can have."""
    parts = []
    for field in message_pb2.Part.DESCRIPTOR.oneofs_by_name["kind"].fields:
        part = message_pb2.Part()
        filled(getattr(part, field.name)).SetInParent()
        shown = to_json(part)
        assert shown is not None
        parts.append(shown)
    return parts


def test_the_frame_of_the_document_is_one_of_a_stream() -> None:
    frame = DOCUMENT.split("```\n")[1]
    lines = dict(line.split(": ", 1) for line in frame.splitlines())

    assert sse.frame(lines["event"], json.loads(lines["data"]), cursor=lines["id"]).decode() == (
        f"{frame}\n"
    )
