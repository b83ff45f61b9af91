"""Instruction files of a workspace, pinned in the prompts of a chat."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from chatd.content.domain.agent_types import AgentType
from chatd.content.domain.instruction_imports import IMPORTS_MAX
from chatd.content.domain.instructions import FILE_BYTES_MAX, TOTAL_BYTES_MAX
from chatd.content.domain.parts import ContextFile, Skill
from chatd.instructions.clients.files import NodeInstructionFiles
from chatd.instructions.engine.pins import InstructionPins
from chatd.instructions.store.instructions import PostgresInstructions
from chatd.models.domain.catalogue import Catalogue
from chatd.models.engine.configuration import CHAT_PREFIX, ConfigurationCache
from chatd.models.store.catalogue import KeyValues, StoredCatalogue
from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import ChatId
from parley.clock import FakeClock
from parley.postgres import Pool
from support.chatd.chats.served_chats import ServedChats
from support.chatd.workspaces import fake_toolrunner
from support.chatd.workspaces.fake_toolrunner import FakeToolrunner
from support.chatd.workspaces.fixed_locator import FixedLocator
from support.chatd.workspaces.workspace_calls import ANN
from support.database.counted_pool import CountedPool

KIND = ContextFile("AGENTS.md", "be kind")
SKILL = b"---\nname: deploy\ndescription: Ours.\n---\nPush."


class Stage:
    """A chat, its workspace, and everything that reads its instruction files."""

    def __init__(self, pool: Pool, pins_of: Any, fake: FakeToolrunner) -> None:
        self.pool = CountedPool(pool)
        counted = cast(Pool, self.pool)
        stored = StoredCatalogue(counted, cast(Any, None))
        self.cache = ConfigurationCache(stored, Catalogue(), KeyValues(), FakeClock())
        self.fake = fake
        self.published: list[ChatId] = []
        self.pins: InstructionPins = pins_of(
            PostgresInstructions(counted),
            lambda chat_id: self.cache.on_notice(f"{CHAT_PREFIX}{chat_id}", 0),
            self.published.append,
        )

    async def turn(self, chat_id: ChatId) -> tuple[ContextFile, ...]:
        """Return the instruction files of a turn of a chat that has a workspace."""
        facts = replace(await self.cache.chat(chat_id), has_scratch=True)
        return (await self.pins.for_turn(chat_id, ANN, facts)).files


@pytest.fixture
async def stage(pool: Pool, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    fake = FakeToolrunner()
    fake.files = {"AGENTS.md": b"be \xe2\x80\x8bkind\r\n"}
    directory: Path = tmp_path_factory.mktemp("n")
    async with fake_toolrunner.served(fake, directory) as channels:
        files = NodeInstructionFiles(channels, FixedLocator(channels))
        yield Stage(pool, lambda *given: InstructionPins(files, *given), fake)


async def test_a_warm_turn_adds_no_statement_and_no_request_for_instructions(
    stage: Stage, served: ServedChats
) -> None:
    chats = [ChatId((await served.ann.create(f"hello {number}")).id) for number in range(200)]
    for chat_id in chats:
        assert await stage.turn(chat_id) == (KIND,)
        assert await stage.turn(chat_id) == (KIND,)
    asked, executed = len(stage.fake.requests), len(stage.pool.statements)
    assert asked > 0
    assert executed > 0
    for chat_id in chats * 2:
        assert await stage.turn(chat_id) == (KIND,)
    assert (len(stage.fake.requests), len(stage.pool.statements)) == (asked, executed)


async def test_pinned_instructions_stay_until_they_are_refreshed(
    stage: Stage, served: ServedChats
) -> None:
    chat_id = ChatId((await served.ann.create()).id)
    await stage.turn(chat_id)
    stage.fake.files = {"AGENTS.md": b"be brief", "CLAUDE.md": b"be brief", ".cursorrules": b"x"}
    assert await stage.turn(chat_id) == (KIND,)
    pinned = (await stage.cache.chat(chat_id)).instructions
    assert pinned is not None
    renewed = await stage.pins.refresh(chat_id, ANN)
    files = (ContextFile("AGENTS.md", "be brief"), ContextFile(".cursorrules", "x"))
    assert (pinned.version, renewed.version, renewed.found.files) == (1, 2, files)
    assert await stage.turn(chat_id) == files
    assert (await stage.pins.refresh(chat_id, ANN)).version == 2


async def test_imported_files_are_pinned_after_the_others_and_each_once(
    stage: Stage, served: ServedChats
) -> None:
    chat_id = ChatId((await served.ann.create()).id)
    stage.fake.files = {
        "~/AGENTS.md": b"@own.md",
        "~/own.md": b"short answers",
        "AGENTS.md": b"@docs/style.md @CLAUDE.md @gone.md",
        "CLAUDE.md": b"@AGENTS.md @docs/style.md",
        "docs/style.md": b"tabs, @deeper.md @../AGENTS.md",
        "docs/deeper.md": b"never read",
    }
    assert [(file.path, file.content) for file in await stage.turn(chat_id)] == [
        ("~/AGENTS.md", "@own.md"),
        ("AGENTS.md", "@docs/style.md @CLAUDE.md @gone.md"),
        ("CLAUDE.md", "@AGENTS.md @docs/style.md"),
        ("~/own.md", "short answers"),
        ("docs/style.md", "tabs, @deeper.md @../AGENTS.md"),
    ]
    stage.fake.files["docs/style.md"] = b"spaces"
    facts = await stage.cache.chat(chat_id)
    assert await stage.pins.compare(chat_id, ANN, facts)


async def test_an_import_that_the_node_refuses_as_invalid_is_left_out(
    stage: Stage, served: ServedChats
) -> None:
    chat_id = ChatId((await served.ann.create()).id)
    stage.fake.files = {
        "AGENTS.md": b"@odd.md @style.md",
        "style.md": b"tabs",
        "skills/deploy/SKILL.md": SKILL,
    }
    stage.fake.invalid = frozenset({"odd.md"})
    found = (await stage.pins.refresh(chat_id, ANN)).found
    assert [file.path for file in found.files] == ["AGENTS.md", "style.md"]
    assert [skill.name for skill in found.skills] == ["deploy"]


async def test_imported_files_take_only_the_size_that_the_others_leave(
    stage: Stage, served: ServedChats
) -> None:
    chat_id = ChatId((await served.ann.create()).id)
    line = b"a line of text\n"
    large = {f"~/{n}.md": b"%d\n" % n + line * (FILE_BYTES_MAX // len(line)) for n in range(3)}
    imports = " ".join(f"@{name}" for name in large).encode()
    stage.fake.files = {"~/AGENTS.md": imports, "AGENTS.md": b"be kind", "CLAUDE.md": b"x", **large}
    files = await stage.turn(chat_id)
    assert files[1:3] == (KIND, ContextFile("CLAUDE.md", "x"))
    assert [file.path for file in files[3:]] == list(large)
    assert files[-1].truncated
    assert sum(len(file.content.encode()) for file in files) <= TOTAL_BYTES_MAX


async def test_no_more_than_so_many_files_are_imported(stage: Stage, served: ServedChats) -> None:
    chat_id = ChatId((await served.ann.create()).id)
    names = [f"part-{number}.md" for number in range(IMPORTS_MAX + 5)]
    stage.fake.files = {name: name.encode() for name in names}
    stage.fake.files["AGENTS.md"] = " ".join(f"@{name}" for name in names).encode()
    assert len(await stage.turn(chat_id)) == 1 + IMPORTS_MAX


async def test_the_file_of_the_home_comes_first_and_counts_for_the_drift(
    stage: Stage, served: ServedChats
) -> None:
    chat_id = ChatId((await served.ann.create()).id)
    stage.fake.files["~/AGENTS.md"] = b"answer in French"
    at_home = ContextFile("~/AGENTS.md", "answer in French")
    assert await stage.turn(chat_id) == (at_home, KIND)
    asked = len(stage.fake.requests)
    assert await stage.turn(chat_id) == (at_home, KIND)
    assert len(stage.fake.requests) == asked
    assert not await stage.pins.compare(chat_id, ANN, await stage.cache.chat(chat_id))
    stage.fake.files["~/AGENTS.md"] = b"answer in German"
    assert await stage.pins.compare(chat_id, ANN, await stage.cache.chat(chat_id))
    assert stage.published == [chat_id]
    del stage.fake.files["~/AGENTS.md"]
    assert (await stage.pins.refresh(chat_id, ANN)).found.files == (KIND,)


async def test_drift_is_stored_and_published_once_until_a_refresh(
    stage: Stage, served: ServedChats
) -> None:
    chat_id = ChatId((await served.ann.create()).id)

    async def compare() -> tuple[bool, int]:
        """Return whether the files differ, and the number of statements that it took."""
        facts = await stage.cache.chat(chat_id)
        before = len(stage.pool.statements)
        return (
            await stage.pins.compare(chat_id, ANN, facts),
            len(stage.pool.statements) - before,
        )

    assert await compare() == (False, 0)
    await stage.turn(chat_id)
    assert await compare() == (False, 0)
    stage.fake.files = {"AGENTS.md": b"be brief"}
    assert await compare() == (True, 1)
    assert await compare() == (True, 0)
    assert stage.published == [chat_id]
    assert (await served.ann.get(chat_id)).instructions_drifted
    await stage.pins.renew(chat_id, ANN)
    assert stage.published == [chat_id, chat_id]
    assert not (await served.ann.get(chat_id)).instructions_drifted
    assert await compare() == (False, 0)


async def test_a_comparison_with_files_that_are_not_pinned_any_more_says_nothing(
    stage: Stage, served: ServedChats
) -> None:
    chat_id = ChatId((await served.ann.create()).id)
    await stage.turn(chat_id)
    before = await stage.cache.chat(chat_id)
    stage.fake.files = {"AGENTS.md": b"be brief"}
    await stage.pins.renew(chat_id, ANN)
    assert await stage.pins.compare(chat_id, ANN, before)
    assert stage.published == []
    assert not (await served.ann.get(chat_id)).instructions_drifted


async def test_skills_of_the_workspace_are_pinned_by_name(
    stage: Stage, served: ServedChats
) -> None:
    chat_id = ChatId((await served.ann.create()).id)
    stage.fake.files = {
        ".agents/skills/deploy/SKILL.md": b"---\nname: deploy\ndescription: Ours.\n---\nPush.",
        ".agents/skills/other/SKILL.md": b"---\nname: deploy\ndescription: Ours.\n---\nPush.",
        ".agents/skills/deploy/deep/SKILL.md": b"x",
        "skills/none/SKILL.md": b"Push.",
    }
    await stage.turn(chat_id)
    pinned = (await stage.cache.chat(chat_id)).instructions
    assert pinned is not None
    assert pinned.found.skills == (Skill("deploy", "Ours.", ".agents/skills/deploy"),)
    stage.fake.files = {}
    assert await stage.pins.compare(chat_id, ANN, await stage.cache.chat(chat_id))


async def test_types_of_agents_of_the_workspace_are_pinned_by_name(
    stage: Stage, served: ServedChats
) -> None:
    chat_id = ChatId((await served.ann.create()).id)
    described = b"---\ndescription: Reviews.\ntools: read_file\n---\nRead."
    stage.fake.files = {
        ".parley/agents/reviewer.md": described,
        ".claude/agents/reviewer.md": b"---\ndescription: Other.\n---\nRead.",
        ".claude/agents/deep/writer.md": described,
        ".agents/agents/none.md": b"Read.",
    }
    await stage.turn(chat_id)
    pinned = (await stage.cache.chat(chat_id)).instructions
    assert pinned is not None
    reviewer = AgentType("reviewer", "Reviews.", ".parley/agents/reviewer.md", ("read_file",))
    assert pinned.found.agent_types == (reviewer,)
    stage.fake.files = {}
    assert await stage.pins.compare(chat_id, ANN, await stage.cache.chat(chat_id))


async def test_a_skill_that_may_not_be_read_is_left_out(stage: Stage, served: ServedChats) -> None:
    chat_id = ChatId((await served.ann.create()).id)
    stage.fake.files |= {
        ".agents/skills/deploy/SKILL.md": SKILL,
        ".agents/skills/locked/SKILL.md": SKILL,
    }
    stage.fake.forbidden = frozenset({".agents/skills/locked/SKILL.md"})
    found = (await stage.pins.refresh(chat_id, ANN)).found
    assert (found.files, [skill.name for skill in found.skills]) == ((KIND,), ["deploy"])


async def test_files_that_are_no_skills_count_as_tried(stage: Stage, served: ServedChats) -> None:
    chat_id = ChatId((await served.ann.create()).id)
    stage.fake.files |= {f"skills/none-{number:03}/SKILL.md": b"x" for number in range(100)}
    stage.fake.files["skills/zero/SKILL.md"] = SKILL.replace(b"deploy", b"zero")
    found = (await stage.pins.refresh(chat_id, ANN)).found
    assert (found.files, found.skills) == ((KIND,), ())
    assert sum("none-" in getattr(request, "path", "") for request in stage.fake.requests) == 50


async def test_skills_that_take_too_long_leave_the_instructions(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    fake = FakeToolrunner()
    fake.files = {"AGENTS.md": b"be kind", "skills/deploy/SKILL.md": SKILL}
    async with fake_toolrunner.served(fake, tmp_path_factory.mktemp("n")) as channels:
        files = NodeInstructionFiles(channels, FixedLocator(channels), skills_s=0.1)
        fake.is_holding = True
        found = await files.read(ChatId("00000000-0000-0000-0000-000000000001"), ANN)
        fake.release.set()
    assert (found.files, found.skills) == ((KIND,), ())


async def test_a_deleted_chat_pins_nothing(stage: Stage) -> None:
    with pytest.raises(ChatNotFound):
        await stage.pins.refresh(ChatId("00000000-0000-0000-0000-00000000dead"), ANN)
