"""The examples of `docs/search.md`, searched in a real database."""

import re
from pathlib import Path

import pytest

from chatd.chats.domain.chat import NewMessage
from chatd.chats.domain.commands import FinishTurn
from chatd.chats.domain.transitions import fence_of
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text
from chatd.primitives.domain.ids import ChatId
from parley.api.chat.v1 import chat_service_pb2 as api
from support.chatd.chats.chat_people import ANN_ID
from support.chatd.chats.served_chats import ServedChats

DOCUMENT = (Path(__file__).resolve().parents[4] / "docs" / "search.md").read_text()
FOUND, REFUSED = DOCUMENT.split("| `q` | Finds |")[1].split("| Refused `q` | Why |")
ROW = re.compile(r"^\| `(.+)` \| (.+) \|$", re.MULTILINE)
EXAMPLES = ROW.findall(FOUND)
REFUSED_EXAMPLES = [query for query, _ in ROW.findall(REFUSED)]


async def answered(served: ServedChats, chat_id: str, said: str) -> None:
    """Let a turn end with an answer, which nobody has read yet."""
    state = await served.state(chat_id)
    message = NewMessage(Role.ASSISTANT, (Text(said),))
    await served.stores.chats.apply(ChatId(chat_id), FinishTurn(fence_of(state), (message,)))


async def make_chats(served: ServedChats) -> None:
    """Make the chats that the document speaks of."""
    invoice = await served.ann.create("please order 12 pens", title="Invoice for Ada")
    await answered(served, invoice.id, "They are ordered.")
    for title, said in (("Travel plan", 'Say "hello" to Bob'), ("100% sure", "yes")):
        chat = await served.ann.create(title=title)
        await answered(served, chat.id, said)
        await served.ann.ask(
            api.MarkReadRequest(request_id=title, chat_id=chat.id, last_message_id=2)
        )
    old = await served.ann.create(title="Old invoice")
    await answered(served, old.id, "paid")
    await served.ann.ask(api.SetArchivedRequest(request_id="a", chat_id=old.id, archived=True))
    notes = await served.bob.create(title="Shared notes")
    share = api.Share(user_id=ANN_ID)
    await served.bob.ask(api.SetSharesRequest(request_id="s", chat_id=notes.id, shares=[share]))


async def test_every_example_finds_what_the_document_says(served: ServedChats) -> None:
    await make_chats(served)

    found = {
        query: ", ".join(chat.title for chat in page.chats) or "nothing"
        for query, _ in EXAMPLES
        if (page := await served.ann.ask(api.ListChatsRequest(query=query)))
    }

    assert found == dict(EXAMPLES)
    assert len(EXAMPLES) > 10


@pytest.mark.parametrize("query", REFUSED_EXAMPLES)
async def test_every_example_that_shall_be_refused_is_refused(
    served: ServedChats, query: str
) -> None:
    refused = await served.ann.refusal(api.ListChatsRequest(query=query))

    assert (refused.reason, [each.field for each in refused.violations]) == (
        "INVALID_REQUEST",
        ["query"],
    )
