"""Which model a turn runs with: what its own message asked for, also when it had to wait."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from chatd.chats.domain.chat import NewMessage
from chatd.chats.domain.commands import EditMessage, SendMessage
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import File, Part, Text
from chatd.files.engine.cache import CachedFiles
from chatd.models.domain.language_model import (
    FileData,
    Finished,
    ModelEvent,
    ModelRequest,
    TextDelta,
)
from chatd.models.domain.profile import ModelChoice, ModelProfile, ReasoningEffort
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId, QueuedMessageId
from chatd.turns.domain.turn import TurnSetup
from chatd.turns.engine.chat_run import TurnRunner
from support.chatd.turns.absent_ports import turn_ports
from support.chatd.turns.turn_stage import ANN, WORKER, Stage

LOW, HIGH = ReasoningEffort.LOW, ReasoningEffort.HIGH
PICTURE = File("00000000-0000-0000-0000-0000000000f1", "image/png", "a.png")
GONE = File("00000000-0000-0000-0000-0000000000f2", "image/png", "b.png")


class AskedSetups:
    """Runs every turn with the model that is asked for."""

    async def prepare(
        self, chat_id: ChatId, owner: Owner, choice: ModelChoice | None = None
    ) -> TurnSetup:
        assert choice is not None
        return TurnSetup(
            ModelProfile(choice.model_id or "default", reasoning_effort=choice.reasoning_effort)
        )


class CountingFiles:
    """One file of Ann's, and how often it was read."""

    def __init__(self) -> None:
        self.reads: list[tuple[str, ...]] = []

    async def load(self, file_ids: Collection[str], owner_id: OwnerId) -> Mapping[str, FileData]:
        self.reads.append(tuple(file_ids))
        known = {PICTURE.file_id: FileData("a.png", "image/png", b"12345")}
        return {id_: file for id_, file in known.items() if id_ in file_ids and owner_id == ANN.id}


def answering(request: ModelRequest) -> Iterable[ModelEvent]:
    yield TextDelta(f"{request.model} {request.reasoning_effort}".strip())
    yield Finished()


def stage(files: CountingFiles | None = None) -> Stage:
    made = Stage(answering)
    ports = turn_ports(
        made.commits,
        made.model,
        made.tools,
        AskedSetups(),
        made.live,
        files=CachedFiles(files or CountingFiles()),
        clock=made.clock,
        ended=made.ended.append,
    )
    made.runner = TurnRunner(ports)
    return made


def sending(number: int, choice: ModelChoice, *content: Part) -> SendMessage:
    message = NewMessage(Role.USER, content or (Text(f"m{number}"),), ANN.id, choice=choice)
    return SendMessage(message, QueuedMessageId(f"q{number}"), WORKER)


async def test_messages_that_waited_keep_the_model_that_each_asked_for() -> None:
    scene = stage()
    scene.do(sending(1, ModelChoice("a", LOW)))
    scene.do(sending(2, ModelChoice("b")))
    scene.do(sending(3, ModelChoice("", HIGH)))
    scene.do(sending(4, ModelChoice()))
    async with asyncio.timeout(5):
        await scene.run()
    said = [text for role, text in scene.texts if role == "assistant"]
    assert said == ["a low", "b low", "b high", "b high"]


async def test_an_edit_chooses_anew() -> None:
    scene = stage()
    scene.do(sending(1, ModelChoice("a")))
    await scene.run()
    message = replace(scene.messages[0], choice=None)
    edited = NewMessage(Role.USER, (Text("again"),), ANN.id, choice=ModelChoice("c"))
    scene.do(EditMessage(message.id, edited, WORKER))
    await scene.run()
    assert scene.texts == [("user", "again"), ("assistant", "c")]


async def test_a_request_says_whose_it_is_and_brings_its_files_read_once() -> None:
    files = CountingFiles()
    scene = stage(files)
    scene.do(sending(1, ModelChoice("a"), Text("look"), PICTURE, GONE))
    await scene.run()
    scene.do(sending(2, ModelChoice()))
    await scene.run()
    for request in scene.model.requests:
        assert (request.owner_id, request.chat_id) == (ANN.id, scene.state.chat_id)
        assert request.files == {PICTURE.file_id: FileData("a.png", "image/png", b"12345")}
    assert files.reads == [(PICTURE.file_id, GONE.file_id), (GONE.file_id,)]


async def test_a_turn_without_files_reads_none() -> None:
    files = CountingFiles()
    scene = stage(files)
    scene.do(sending(1, ModelChoice("a")))
    await scene.run()
    assert (files.reads, scene.model.requests[0].files) == ([], {})


async def test_files_at_hand_are_bounded_and_belong_to_their_owner() -> None:
    files = CountingFiles()
    small = CachedFiles(files, kept_bytes_max=4)
    for _ in range(2):
        assert set(await small.load([PICTURE.file_id], ANN.id)) == {PICTURE.file_id}
    assert len(files.reads) == 2
    large = CachedFiles(files)
    await large.load([PICTURE.file_id], ANN.id)
    assert await large.load([PICTURE.file_id], OwnerId("eve")) == {}
