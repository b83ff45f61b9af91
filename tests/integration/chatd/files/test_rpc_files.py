"""Files in and out of chatd, and who may see them."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import grpc
import pytest

from chatd.chats.domain.chat import NewMessage
from chatd.chats.domain.commands import CommitResults, CommitStep, RecordResult
from chatd.chats.domain.transitions import fence_of
from chatd.content.domain.files import FILE_BYTES_MAX
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import File, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.tools import Dispatch, Executor
from chatd.files.rpc.servicer import CHUNK_BYTES_MAX, RANGE_BYTES
from chatd.models.domain.language_model import FileData
from chatd.primitives.domain.ids import ChatId, ExecutionId, OwnerClaim
from parley.api.chat.v1 import chat_service_pb2 as chats_api
from parley.api.chat.v1 import file_pb2, message_pb2
from parley.api.chat.v1 import file_service_pb2 as api
from parley.identity import User, UserId
from parley.rpc import Problem, acting_for, problem_of
from support.chatd.chats.chat_people import ANN_ID, BOB_ID, EVES_GROUP, Person, text
from support.chatd.chats.served_chats import ServedChats

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20_000
ABSENT = "00000000-0000-0000-0001-000000000001"
HANDED_OVER = "00000000-0000-0000-0001-000000000002"


def pieces(data: bytes, **head: str) -> Iterator[api.UploadFileRequest]:
    told = {"request_id": "up", "name": "a.png", "media_type": "image/png", **head}
    yield api.UploadFileRequest(head=api.UploadHead(**told))
    for place in range(0, len(data), CHUNK_BYTES_MAX):
        yield api.UploadFileRequest(chunk=data[place : place + CHUNK_BYTES_MAX])


async def upload(person: Person, data: bytes = PNG, **head: str) -> file_pb2.File:
    with acting_for(User(UserId(person.id), person.role)):
        answer = await person.files.UploadFile(pieces(data, **head))
    file: file_pb2.File = answer.file
    return file


async def refusal(call: Any) -> Problem:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return problem_of(refused.value)


async def get(person: Person, file_id: str) -> file_pb2.File:
    with acting_for(User(UserId(person.id), person.role)):
        answer = await person.files.GetFile(api.GetFileRequest(file_id=file_id))
    file: file_pb2.File = answer.file
    return file


async def download(
    person: Person, file_id: str, offset_bytes: int = 0, length_bytes: int = 0
) -> tuple[file_pb2.File, bytes]:
    request = api.DownloadFileRequest(
        file_id=file_id, offset_bytes=offset_bytes, length_bytes=length_bytes
    )
    with acting_for(User(UserId(person.id), person.role)):
        head, *chunks = [piece async for piece in person.files.DownloadFile(request)]
    assert [chunk.chunk.last for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert all(len(chunk.chunk.data) <= CHUNK_BYTES_MAX for chunk in chunks)
    return head.file, b"".join(chunk.chunk.data for chunk in chunks)


async def sees(person: Person, file_id: str) -> bool:
    """Return whether somebody may read a file; absent is absent to both methods."""
    try:
        file = await get(person, file_id)
    except grpc.aio.AioRpcError as error:
        problem = problem_of(error)
        assert problem == await refusal(download(person, file_id))
        assert (problem.status, problem.reason) == (grpc.StatusCode.NOT_FOUND, "FILE_NOT_FOUND")
        return False
    assert (await download(person, file_id))[0] == file
    return True


async def chat_with(served: ServedChats, file_id: str) -> str:
    """Let Ann start a chat with a file."""
    part = message_pb2.Part(file=message_pb2.FilePart(file_id=file_id))
    request = chats_api.CreateChatRequest(
        request_id=served.ann.fresh(), content=[text("look"), part]
    )
    created = await served.ann.ask(request)
    chat_id: str = created.chat.id
    return chat_id


async def share(served: ServedChats, chat_id: str, *shares: chats_api.Share) -> None:
    request = chats_api.SetSharesRequest(
        request_id=served.ann.fresh(), chat_id=chat_id, shares=shares
    )
    await served.ann.ask(request)


async def test_a_file_comes_back_byte_for_byte(served: ServedChats) -> None:
    file = await upload(served.ann)
    assert file == file_pb2.File(
        id=file.id,
        owner_id=ANN_ID,
        name="a.png",
        media_type="image/png",
        size_bytes=len(PNG),
        sha256=sha256(PNG).hexdigest(),
        created_at=file.created_at,
    )
    assert len(PNG) > 2 * RANGE_BYTES
    assert await get(served.ann, file.id) == file
    assert await download(served.ann, file.id) == (file, PNG)


@pytest.mark.parametrize(
    ("offset", "length"),
    [(0, 1), (5, RANGE_BYTES), (len(PNG) - 3, 0), (len(PNG) - 3, 100), (len(PNG), 0)],
)
async def test_a_stretch_of_a_file_can_be_read(
    served: ServedChats, offset: int, length: int
) -> None:
    file = await upload(served.ann)
    end = offset + length if length else len(PNG)
    assert await download(served.ann, file.id, offset, length) == (file, PNG[offset:end])


@pytest.mark.parametrize(("offset", "length"), [(-1, 0), (0, -1), (len(PNG) + 1, 0)])
async def test_an_impossible_stretch_is_refused(
    served: ServedChats, offset: int, length: int
) -> None:
    file = await upload(served.ann)
    problem = await refusal(download(served.ann, file.id, offset, length))
    assert problem.reason == "INVALID_REQUEST"


async def test_an_upload_that_is_repeated_gives_the_same_file(served: ServedChats) -> None:
    first, again = await upload(served.ann), await upload(served.ann)
    other, bobs = await upload(served.ann, request_id="other"), await upload(served.bob)
    assert again == first
    assert len({first.id, other.id, bobs.id}) == 3
    problem = await refusal(upload(served.ann, PNG + b"x"))
    assert problem.reason == "REQUEST_ID_REUSED"
    assert (await download(served.ann, first.id))[1] == PNG


@pytest.mark.parametrize(
    ("data", "head", "reason"),
    [
        (PNG, {"media_type": "image/jpeg"}, "MEDIA_TYPE_REFUSED"),
        (b"<svg/>", {"media_type": "text/plain"}, "MEDIA_TYPE_REFUSED"),
        (b"PK\x03\x04", {"media_type": "application/zip"}, "MEDIA_TYPE_REFUSED"),
        (b"", {}, "INVALID_REQUEST"),
        (b"x" * (FILE_BYTES_MAX + 1), {"media_type": "text/plain"}, "FILE_TOO_LARGE"),
        (PNG, {"request_id": ""}, "INVALID_REQUEST"),
        (PNG, {"name": "x" * 5000}, "INVALID_REQUEST"),
    ],
)
async def test_what_is_no_file_to_keep_is_refused(
    served: ServedChats, data: bytes, head: dict[str, str], reason: str
) -> None:
    assert (await refusal(upload(served.ann, data, **head))).reason == reason
    assert await served.pool.fetchval("SELECT count(*) FROM chat.files") == 0


async def test_an_upload_begins_with_its_head(served: ServedChats) -> None:
    head, chunk = (next(pieces(b"")), api.UploadFileRequest(chunk=PNG[:100]))
    for sent in ([], [chunk], [head, head], [head, chunk, head], [api.UploadFileRequest()]):
        with acting_for(User(UserId(served.ann.id), served.ann.role)):
            problem = await refusal(served.ann.files.UploadFile(iter(sent)))
        assert problem.reason == "INVALID_REQUEST"


async def test_an_odd_name_is_stored_without_what_could_mislead(served: ServedChats) -> None:
    file = await upload(served.ann, name="..\\..\\a\r\n\u202egnp.png")
    assert file.name == "agnp.png"


async def test_a_file_is_seen_by_its_owner_and_the_readers_of_a_chat_with_it(
    served: ServedChats,
) -> None:
    file, aside = await upload(served.ann), await upload(served.ann, request_id="aside")
    ann, bob, eve = served.ann, served.bob, served.eve

    async def readers(file_id: str) -> list[bool]:
        return [await sees(person, file_id) for person in (ann, bob, eve)]

    assert await readers(file.id) == [True, False, False]
    chat_id = await chat_with(served, file.id)
    assert await readers(file.id) == [True, False, False]
    await share(served, chat_id, chats_api.Share(user_id=BOB_ID))
    assert await readers(file.id) == [True, True, False]
    await share(served, chat_id, chats_api.Share(group_id=EVES_GROUP))
    assert await readers(file.id) == [True, False, True]
    assert await readers(aside.id) == [True, False, False]
    await share(served, chat_id)
    assert await readers(file.id) == [True, False, False]


async def claim_of(served: ServedChats, chat_id: str) -> OwnerClaim:
    """Return the claim of the present owner of a chat."""
    state = await served.state(chat_id)
    return OwnerClaim(ChatId(chat_id), state.owner_epoch, state.turn_id)


async def test_a_file_of_a_child_is_seen_by_the_readers_of_its_root(served: ServedChats) -> None:
    root = await served.ann.create()
    child_id = await served.add_child(root.id)
    file_id = HANDED_OVER
    report = FileData("report.md", "text/markdown", b"# Report")
    claim = await claim_of(served, child_id)
    await served.stores.attachments.keep(claim, ANN_ID, file_id, report)
    assert not await sees(served.bob, file_id)
    await share(served, root.id, chats_api.Share(user_id=BOB_ID))
    assert await sees(served.bob, file_id)


async def test_a_file_that_a_call_hands_over_is_shown_with_its_result(served: ServedChats) -> None:
    chat = await served.ann.create()
    chat_id, chats = ChatId(chat.id), served.stores.chats
    call = ToolCall("c", "attach_file", "{}")
    dispatch = Dispatch(ExecutionId(ABSENT), call, Executor.TOOLRUNNER, "j")
    report = FileData("report.md", "text/markdown", b"# Report")
    claim = await claim_of(served, chat.id)
    await served.stores.attachments.keep(claim, ANN_ID, HANDED_OVER, report)
    handed = File(HANDED_OVER, "text/markdown", "report.md")
    result = ToolResult("c", "attach_file", "{}", ToolOutcome.DONE, files=(handed,))
    step = (NewMessage(Role.ASSISTANT, (call,)),)
    for command in (
        lambda fence: CommitStep(fence, step, (dispatch,)),
        lambda fence: RecordResult(fence, result),
        CommitResults,
    ):
        await chats.apply(chat_id, command(fence_of(await served.state(chat_id))))

    page = await served.ann.ask(chats_api.ListMessagesRequest(chat_id=chat_id))

    (part,) = page.messages[0].content
    assert list(part.tool_result.files) == [
        message_pb2.FilePart(file_id=HANDED_OVER, media_type="text/markdown", name="report.md")
    ]
    assert (await download(served.ann, HANDED_OVER))[1] == b"# Report"


async def test_readers_lose_a_file_with_the_chat_that_is_deleted(served: ServedChats) -> None:
    file = await upload(served.ann)
    chat_id = await chat_with(served, file.id)
    await share(served, chat_id, chats_api.Share(user_id=BOB_ID))
    assert await sees(served.bob, file.id)
    await served.finish(chat_id)
    await served.ann.ask(chats_api.DeleteChatRequest(request_id="d", chat_id=chat_id))
    assert not await sees(served.bob, file.id)
    assert await sees(served.ann, file.id)


async def test_what_cannot_be_an_id_and_what_is_absent_look_the_same(served: ServedChats) -> None:
    assert not await sees(served.ann, "nonsense")
    assert not await sees(served.ann, ABSENT)


async def test_nobody_sends_a_file_of_somebody_else(served: ServedChats) -> None:
    file = await upload(served.bob)
    part = message_pb2.Part(file=message_pb2.FilePart(file_id=file.id))
    request = chats_api.CreateChatRequest(request_id="x", content=[part])
    assert (await served.ann.refusal(request)).reason == "FILE_NOT_FOUND"
