"""Tickets for terminals: who gets one, for what, and what it says."""

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from parley.api.chat.v1 import chat_service_pb2 as chats_api
from parley.api.workspace.v1 import process_pb2
from parley.api.workspace.v1 import workspace_service_pb2 as api
from parley.postgres import Pool
from support.chatd.chats.chat_people import ANN_ID, BOB_ID
from support.chatd.chats.served_chats import ServedChats, served_chats
from support.chatd.workspaces.fake_toolrunner import GENERATION, FakeToolrunner
from support.chatd.workspaces.fake_toolrunner import served as served_toolrunner

PROCESS_ID = "00000000-0000-0000-0000-0000000000cc"


@pytest.fixture
def toolrunner() -> FakeToolrunner:
    return FakeToolrunner()


@pytest.fixture
async def served(
    pool: Pool, tmp_path: Path, toolrunner: FakeToolrunner
) -> AsyncIterator[ServedChats]:
    async with (
        served_toolrunner(toolrunner, tmp_path) as channels,
        served_chats(pool, tmp_path, toolrunners=channels) as running,
    ):
        yield running


def said_by(ticket: str) -> dict[str, Any]:
    """Return what a ticket says, whoever signed it."""
    body = ticket.split(".")[1]
    said: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return said


def request(workspace_id: str, **fields: Any) -> api.IssueAttachTicketRequest:
    whole: dict[str, Any] = {"request_id": "t", "process_id": PROCESS_ID} | fields
    return api.IssueAttachTicketRequest(workspace_id=workspace_id, **whole)


async def test_the_owner_gets_a_ticket_for_a_minute(served: ServedChats, tmp_path: Path) -> None:
    chat = await served.ann.create()
    issued = await served.ann.ask(request(chat.id, view_only=True))
    said = said_by(issued.ticket)
    ticket_id, issued_s = said.pop("jti"), said.pop("iat")
    assert said == {
        "iss": "chatd",
        "aud": "toolrunner",
        "exp": issued_s + 60,
        "typ": "attach",
        "sub": ANN_ID,
        "workspace": chat.id,
        "epoch": 0,
        "process": PROCESS_ID,
        "node": GENERATION,
        "view_only": True,
    }
    assert issued.expires_at.seconds == issued_s + 60
    assert (issued.node_address, issued.process_id) == (f"unix:{tmp_path}/fake.sock", PROCESS_ID)
    again = await served.ann.ask(request(chat.id))
    assert said_by(again.ticket)["jti"] == ticket_id
    other = await served.ann.ask(request(chat.id, request_id="u"))
    assert said_by(other.ticket)["jti"] != ticket_id


async def test_the_workspace_of_a_chat_is_named_by_the_chat(served: ServedChats) -> None:
    chat = await served.ann.create()
    issued = await served.ann.ask(request("", chat_id=chat.id))
    assert said_by(issued.ticket)["workspace"] == chat.id


async def test_nobody_else_gets_one_not_even_a_reader(served: ServedChats) -> None:
    chat = await served.ann.create()
    shares = [chats_api.Share(user_id=BOB_ID)]
    await served.ann.ask(
        chats_api.SetSharesRequest(request_id=served.ann.fresh(), chat_id=chat.id, shares=shares)
    )
    for person, reason in ((served.bob, "CHAT_READ_ONLY"), (served.eve, "WORKSPACE_NOT_FOUND")):
        refused = await person.refusal(request(chat.id, view_only=True))
        assert refused.reason == reason


async def test_who_does_not_say_what_to_attach_to_is_refused(served: ServedChats) -> None:
    chat = await served.ann.create()
    nothing = api.IssueAttachTicketRequest(request_id="t", workspace_id=chat.id)
    for wrong in (nothing, request(chat.id, process_id="no-id")):
        refused = await served.ann.refusal(wrong)
        assert refused.status is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_ticket_for_a_shell_starts_one(
    served: ServedChats, toolrunner: FakeToolrunner
) -> None:
    chat = await served.ann.create()
    asked = api.IssueAttachTicketRequest(
        request_id="t", workspace_id=chat.id, shell=api.NewShell(workdir="deep", rows=30)
    )
    issued = await served.ann.ask(asked)
    (started,) = (each for each in toolrunner.requests if hasattr(each, "spec"))
    assert (started.spec.workdir, started.spec.terminal) == (
        "deep",
        process_pb2.TerminalSize(rows=30, columns=80),
    )
    assert issued.process_id
    assert said_by(issued.ticket)["process"] == issued.process_id
