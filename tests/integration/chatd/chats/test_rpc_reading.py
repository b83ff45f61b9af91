import uuid
from dataclasses import replace
from typing import Any

from chatd.chats.domain.chat import NewMessage
from chatd.chats.domain.commands import FinishTurn
from chatd.chats.domain.transitions import fence_of
from chatd.chats.store.reading import CHILDREN_MAX, EXPORT_PAGE_LENGTH, TODO_MESSAGES_MAX
from chatd.content.domain.messages import FinishReason, Role, Visibility
from chatd.content.domain.parts import ContextFile, Skill, Text, ToolOutcome, ToolResult
from chatd.models.domain.price import ModelUse
from chatd.primitives.domain.ids import ChatId
from parley.api.chat.v1 import chat_pb2, message_pb2
from parley.api.chat.v1 import chat_service_pb2 as api
from support.chatd.chats.chat_people import BOB_ID, EVES_GROUP, Person, text
from support.chatd.chats.served_chats import INSERT_CHILD, ServedChats


async def walk(person: Person, **wanted: Any) -> list[list[str]]:
    """Return the titles of every page of a list."""
    pages, token = [], ""
    while True:
        page = await person.ask(api.ListChatsRequest(page_token=token, **wanted))
        pages.append([chat.title for chat in page.chats])
        token = page.next_page_token
        if not token:
            return pages


async def titled(served: ServedChats, *titles: str, **more: Any) -> list[chat_pb2.Chat]:
    return [await served.ann.create(title=title, **more) for title in titles]


async def share_with(served: ServedChats, chat_id: str, *shares: api.Share) -> None:
    await served.ann.ask(api.SetSharesRequest(request_id="s", chat_id=chat_id, shares=shares))


async def pin(served: ServedChats, chat_id: str) -> None:
    request = api.UpdateChatRequest(request_id="p", chat=chat_pb2.Chat(id=chat_id, pin_order=1))
    request.update_mask.paths.append("pin_order")
    await served.ann.ask(request)


async def test_a_list_has_pinned_chats_first_and_then_the_newest_change(
    served: ServedChats,
) -> None:
    a, b, c, d = await titled(served, "a", "b", "c", "d")
    await pin(served, d.id)
    await pin(served, b.id)
    await served.finish(a.id)
    assert await walk(served.ann) == [["b", "d", "a", "c"]]
    assert await walk(served.ann, page_size=1) == [["b"], ["d"], ["a"], ["c"]]
    assert await walk(served.bob) == [[]]
    await served.add_child(c.id)
    assert await walk(served.ann, page_size=2) == [["b", "d"], ["a", "c"]]


async def test_pages_stay_where_they_are_while_chats_come(served: ServedChats) -> None:
    await titled(served, *(f"old {number}" for number in range(5)))
    first = await served.ann.ask(api.ListChatsRequest(page_size=2))
    seen = [chat.title for chat in first.chats]
    token = first.next_page_token
    while token:
        await titled(served, "new")
        page = await served.ann.ask(api.ListChatsRequest(page_size=2, page_token=token))
        seen += [chat.title for chat in page.chats]
        token = page.next_page_token
    assert seen == ["old 4", "old 3", "old 2", "old 1", "old 0"]


async def test_pages_of_what_is_shared_are_full(served: ServedChats) -> None:
    chats = await titled(served, *map(str, range(9)))
    for chat in chats[::2]:
        await share_with(served, chat.id, api.Share(user_id=BOB_ID))
    await share_with(served, chats[1].id, api.Share(group_id=EVES_GROUP))
    await pin(served, chats[0].id)
    await served.bob.create(title="own")
    assert await walk(served.bob, shared_with_me=True, page_size=2) == [
        ["8", "6"],
        ["4", "2"],
        ["0"],
    ]
    assert await walk(served.bob) == [["own"]]
    assert await walk(served.eve, shared_with_me=True) == [["1"]]
    assert await walk(served.ann, shared_with_me=True) == [[]]
    assert await walk(served.eve, query="source:shared_with_me") == [["1"]]


async def test_a_list_is_narrowed_by_labels_archive_and_query(served: ServedChats) -> None:
    blue, red = (
        await titled(served, "Blue Sea", labels={"colour": "blue", "kind": "sea"}),
        (await titled(served, "Red 100%_sea", labels={"colour": "red", "kind": "sea"})),
    )
    assert await walk(served.ann, labels={"kind": "sea"}) == [["Red 100%_sea", "Blue Sea"]]
    assert await walk(served.ann, labels={"kind": "sea", "colour": "blue"}) == [["Blue Sea"]]
    assert await walk(served.ann, labels={"kind": "x"}) == [[]]
    assert await walk(served.ann, query="title:blue") == [["Blue Sea"]]
    assert await walk(served.ann, query='title:"blue sea"') == [["Blue Sea"]]
    assert await walk(served.ann, query="title:%") == [["Red 100%_sea"]]
    assert await walk(served.ann, query="title:0%_s") == [["Red 100%_sea"]]
    assert await walk(served.ann, query="title:b_ue") == [[]]
    assert await walk(served.ann, query="title:\\") == [[]]
    await served.finish(red[0].id)
    assert await walk(served.ann, query="has_unread:true title:sea") == [["Red 100%_sea"]]
    assert await walk(served.ann, query="has_unread:false") == [["Blue Sea"]]
    request = api.SetArchivedRequest(request_id="a", chat_id=red[0].id, archived=True)
    await served.ann.ask(request)
    assert await walk(served.ann) == [["Blue Sea"]]
    assert await walk(served.ann, archived=True) == [["Red 100%_sea"]]
    assert await walk(served.ann, query="archived:true") == [["Red 100%_sea"]]
    assert blue[0].title == "Blue Sea"


async def test_search_finds_titles_and_what_was_said_but_not_what_only_the_model_sees(
    served: ServedChats,
) -> None:
    first = await served.ann.create('a "Whale"\nsings', title="One")
    await served.ann.create("nothing", title="Whales", system_prompt="secret krill")
    await served.finish(first.id, "100% plankton")
    assert await walk(served.ann, query="search:whale") == [["One", "Whales"]]
    assert await walk(served.ann, query='search:"""whale"""') == [["One"]]
    assert await walk(served.ann, query="search:0%") == [["One"]]
    assert await walk(served.ann, query="search:krill") == [[]]
    assert await walk(served.ann, query="search:type") == [[]]


IMPOSSIBLE_LISTS = [
    api.ListChatsRequest(query="whale"),
    api.ListChatsRequest(query="colour:red"),
    api.ListChatsRequest(query="title:a title:b"),
    api.ListChatsRequest(query="archived:maybe"),
    api.ListChatsRequest(query="source:everyone"),
    api.ListChatsRequest(query='title:"open'),
    api.ListChatsRequest(query="title:a\0b"),
    api.ListChatsRequest(page_size=201),
    api.ListChatsRequest(page_size=-1),
    api.ListChatsRequest(page_token="nonsense"),
    api.ListChatsRequest(page_token="!"),
    api.ListChatsRequest(labels={"": "x"}),
]


async def test_a_list_that_cannot_be_is_refused(served: ServedChats) -> None:
    for request in IMPOSSIBLE_LISTS:
        assert (await served.ann.refusal(request)).reason == "INVALID_REQUEST", request


async def test_a_token_goes_on_only_in_its_own_list(served: ServedChats) -> None:
    await titled(served, "a", "b")
    token = (await served.ann.ask(api.ListChatsRequest(page_size=1))).next_page_token
    problem = await served.ann.refusal(api.ListChatsRequest(page_token=token, archived=True))
    assert problem.metadata == {"field": "page_token"}


async def test_many_children_of_a_root_are_read_page_by_page(served: ServedChats) -> None:
    chat = await served.ann.create()
    children = [str(uuid.uuid5(uuid.UUID(chat.id), str(n))) for n in range(CHILDREN_MAX + 2)]
    for child_id in children:
        await served.pool.execute(INSERT_CHILD, child_id, chat.id, "waiting")
    first = (await served.ann.ask(api.GetChatRequest(chat_id=chat.id))).chat
    assert first.has_more_children
    asked = api.GetChatRequest(chat_id=chat.id, children_after=first.children[-1].id)
    rest = (await served.ann.ask(asked)).chat
    assert not rest.has_more_children
    assert [each.id for each in (*first.children, *rest.children)] == children
    assert len(rest.children) == 2


async def test_a_root_is_read_with_its_children(served: ServedChats) -> None:
    chat = await served.ann.create()
    children = [await served.add_child(chat.id), await served.add_child(chat.id, "running")]
    got = await served.ann.ask(api.GetChatRequest(chat_id=chat.id))
    assert [child.id for child in got.chat.children] == children
    assert [child.parent_chat_id for child in got.chat.children] == [chat.id] * 2
    child = await served.ann.ask(api.GetChatRequest(chat_id=children[0]))
    assert (child.chat.root_chat_id, list(child.chat.children)) == (chat.id, [])


async def test_a_child_is_shared_with_its_root(served: ServedChats) -> None:
    chat = await served.ann.create()
    child_id = await served.add_child(chat.id)
    await share_with(served, chat.id, api.Share(group_id=EVES_GROUP))
    got = await served.eve.ask(api.GetChatRequest(chat_id=chat.id))
    assert [child.id for child in got.chat.children] == [child_id]
    assert (await served.eve.get(child_id)).shared


async def test_one_message_is_read_by_its_id(served: ServedChats) -> None:
    chat = await served.ann.create()
    await served.finish(chat.id)
    page = await served.ann.ask(api.ListMessagesRequest(chat_id=chat.id))

    got = [
        (await served.ann.ask(api.GetMessageRequest(chat_id=chat.id, message_id=each.id))).message
        for each in page.messages
    ]

    assert got == list(page.messages)
    problem = await served.ann.refusal(api.GetMessageRequest(chat_id=chat.id, message_id=99))
    assert (problem.reason, problem.metadata["message_id"]) == ("MESSAGE_NOT_FOUND", "99")
    problem = await served.ann.refusal(api.GetMessageRequest(chat_id=chat.id))
    assert (problem.reason, problem.metadata) == ("INVALID_REQUEST", {"field": "message_id"})


async def test_pages_of_messages_go_back_from_the_newest_or_on_from_a_bound(
    served: ServedChats,
) -> None:
    chat = await served.ann.create()
    for _ in range(2):
        await served.finish(chat.id)
        await served.ann.send(chat.id)
    await served.ann.send(chat.id, "waits")

    async def page(before_id: int, after_id: int, limit: int) -> tuple[list[int], bool, int]:
        request = api.ListMessagesRequest(
            chat_id=chat.id, before_id=before_id, after_id=after_id, limit=limit
        )
        got = await served.ann.ask(request)
        ids = [message.id for message in got.messages]
        return ids, got.has_more, len(got.queued_messages)

    assert await page(0, 0, 2) == ([5, 4], True, 1)
    assert await page(4, 0, 2) == ([3, 2], True, 0)
    assert await page(2, 0, 2) == ([1], False, 0)
    assert await page(1, 0, 2) == ([], False, 0)
    assert await page(0, 2, 2) == ([3, 4], True, 0)
    assert await page(0, 4, 2) == ([5], False, 0)
    assert await page(5, 1, 2) == ([4, 3], True, 0)
    assert await page(0, 0, 0) == ([5, 4, 3, 2, 1], False, 1)
    assert await page(2**62, 2**61, 1) == ([], False, 0)


async def test_a_page_of_large_messages_is_shorter_than_asked_for(served: ServedChats) -> None:
    chat = await served.ann.create()
    await served.finish(chat.id, *("x" * 300_000 for _ in range(30)))
    for bounds in ({"before_id": 0}, {"after_id": 1}):
        seen: list[int] = []
        has_more = True
        while has_more:
            page = await served.ann.ask(api.ListMessagesRequest(chat_id=chat.id, **bounds))
            seen += [message.id for message in page.messages]
            has_more = page.has_more
            bounds = {next(iter(bounds)): seen[-1]}
        assert sorted(seen) == list(range(2 if "after_id" in bounds else 1, 32))
    exported = await served.ann.export(chat.id)
    assert sum(response.ByteSize() for response in exported) > 9_000_000


IMPOSSIBLE_BOUNDS: list[tuple[dict[str, int], str]] = [
    ({"before_id": 2, "after_id": 2}, "after_id"),
    ({"before_id": -1}, "before_id"),
    ({"after_id": -1}, "after_id"),
    ({"limit": 201}, "limit"),
    ({"limit": -1}, "limit"),
]


async def test_bounds_that_make_no_sense_are_refused_by_name(served: ServedChats) -> None:
    chat = await served.ann.create()
    for bounds, field in IMPOSSIBLE_BOUNDS:
        problem = await served.ann.refusal(api.ListMessagesRequest(chat_id=chat.id, **bounds))
        assert (problem.reason, problem.metadata) == ("INVALID_REQUEST", {"field": field})


async def test_an_answer_is_shown_with_its_cost_and_without_what_is_internal(
    served: ServedChats,
) -> None:
    chat = await served.ann.create()
    state = await served.state(chat.id)
    use = ModelUse("m", 1, 2, 3, 4, 5, 6, cost_micros=0, runtime_ms=8, model_runtime_ms=7)
    use = replace(use, is_estimate=True)
    hidden = NewMessage(Role.ASSISTANT, (Text("inner"),), visibility=Visibility.MODEL)
    content = (
        Text("fine", provider_metadata="secret"),
        ContextFile("AGENTS.md", "secret", truncated=True),
        Skill("swim", "in water", "/secret"),
    )
    cut = FinishReason.LENGTH
    shown = NewMessage(Role.ASSISTANT, content, is_compressed=True, use=use, finish_reason=cut)
    await served.stores.chats.apply(ChatId(chat.id), FinishTurn(fence_of(state), (hidden, shown)))
    page = await served.ann.ask(api.ListMessagesRequest(chat_id=chat.id, after_id=1))
    (message,) = page.messages
    assert message == message_pb2.Message(
        id=3,
        chat_id=chat.id,
        role=message_pb2.ROLE_ASSISTANT,
        content=[
            text("fine"),
            message_pb2.Part(
                context_file=message_pb2.ContextFilePart(path="AGENTS.md", truncated=True)
            ),
            message_pb2.Part(skill=message_pb2.SkillPart(name="swim", description="in water")),
        ],
        revision=2,
        model_id="m",
        created_at=message.created_at,
        usage=message_pb2.Usage(
            input_tokens=1,
            output_tokens=2,
            reasoning_tokens=3,
            cache_read_tokens=4,
            cache_write_tokens=5,
            context_limit_tokens=6,
            cost_micros=0,
            is_estimate=True,
        ),
        runtime_ms=8,
        model_runtime_ms=7,
        compressed=True,
        finish_reason=message_pb2.FINISH_REASON_LENGTH,
    )
    assert message.usage.HasField("cost_micros")


async def test_an_export_is_the_chat_every_message_in_order_and_their_count(
    served: ServedChats,
) -> None:
    chat = await served.ann.create()
    # More than a page of them.
    await served.finish(chat.id, *("fine" for _ in range(EXPORT_PAGE_LENGTH + 5)))
    pieces = await served.ann.export(chat.id)
    count = EXPORT_PAGE_LENGTH + 6
    assert pieces[0].chat.id == chat.id
    assert [piece.message.id for piece in pieces[1:-1]] == list(range(1, count + 1))
    assert pieces[-1].complete == api.ExportComplete(message_count=count)


async def test_the_list_of_a_chat_is_looked_for_in_its_newest_results(served: ServedChats) -> None:
    listed = '{"todos": [{"id": 1, "text": "x", "status": "pending"}]}'
    todo = ToolResult("a", "todo", listed, ToolOutcome.DONE)
    other = ToolResult("b", "look", "{}", ToolOutcome.DONE)
    found = []
    for count in (TODO_MESSAGES_MAX - 1, TODO_MESSAGES_MAX):
        chat = await served.ann.create(f"with {count} others")
        results = (todo, *(other for _ in range(count)))
        messages = tuple(NewMessage(Role.TOOL, (each,)) for each in results)
        fence = fence_of(await served.state(chat.id))
        await served.stores.chats.apply(ChatId(chat.id), FinishTurn(fence, messages))
        items = (await served.ann.ask(api.ListTodosRequest(chat_id=chat.id))).items
        found.append([each.text for each in items])
    assert found == [["x"], []]


async def test_prompts_are_what_users_wrote_newest_first(served: ServedChats) -> None:
    chat = await served.ann.create("one", system_prompt="secret")
    await served.finish(chat.id, "answer")
    await served.ann.send(chat.id, "two\ue000")
    request = api.ListPromptsRequest(chat_id=chat.id)
    prompts = (await served.ann.ask(request)).prompts
    assert [(each.id, each.text) for each in prompts] == [(4, "two\ue000"), (2, "one")]
    (newest,) = (await served.ann.ask(api.ListPromptsRequest(chat_id=chat.id, limit=1))).prompts
    assert newest.id == 4
    assert (await served.bob.refusal(request)).reason == "CHAT_NOT_FOUND"


async def test_chats_of_a_workspace_are_listed(served: ServedChats) -> None:
    (first, _) = await titled(served, "in", "out")
    workspace_id = "00000000-0000-0000-0000-0000000000aa"
    await served.pool.execute(
        "UPDATE chat.chats SET workspace_id = $2 WHERE id = $1", first.id, workspace_id
    )
    assert await walk(served.ann, workspace_id=workspace_id) == [["in"]]
    assert await walk(served.bob, workspace_id=workspace_id) == [[]]
    page = await served.ann.ask(api.ListChatsRequest(page_size=1))
    request = api.ListChatsRequest(page_token=page.next_page_token, workspace_id=workspace_id)
    assert (await served.ann.refusal(request)).reason == "INVALID_REQUEST"
