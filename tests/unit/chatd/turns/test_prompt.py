"""What a model is shown of a history."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatd.chats.domain.call_decisions import INTERRUPTED
from chatd.chats.domain.chat import Message
from chatd.content.domain.messages import Role, Visibility
from chatd.content.domain.parts import (
    ContextFile,
    File,
    FileReference,
    Notice,
    Part,
    Reasoning,
    Skill,
    Source,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResult,
)
from chatd.content.domain.prompts import PromptMessage
from chatd.models.domain.price import ModelUse
from chatd.primitives.domain.ids import MessageId
from chatd.turns.domain.prompt import PromptBuilder
from chatd.turns.domain.system_prompt import (
    ADVISOR,
    PLAN,
    SUBAGENT,
    WORKSPACE_SKILLS,
    Mode,
    SystemPrompt,
    blocks_of,
)
from parley.clock.fake import EPOCH

NOTHING = SystemPrompt()


def row(
    number: int,
    role: Role,
    *parts: Part,
    visibility: Visibility = Visibility.BOTH,
    is_compressed: bool = False,
    model_id: str = "",
) -> Message:
    use = ModelUse(model_id) if model_id else None
    return Message(
        MessageId(number), number, role, parts, "", EPOCH, visibility, is_compressed, use=use
    )


def prompt(*rows: Message, system_prompt: SystemPrompt = NOTHING) -> tuple[PromptMessage, ...]:
    return PromptBuilder().of(rows, system_prompt)


def done(call_id: str, name: str = "t") -> ToolResult:
    return ToolResult(call_id, name, '"done"', ToolOutcome.DONE)


def given_up(call_id: str, name: str = "t") -> ToolResult:
    return ToolResult(call_id, name, json.dumps({"error": INTERRUPTED}), ToolOutcome.CANCELLED)


def test_system_rows_stay_and_everything_else_begins_at_the_newest_boundary() -> None:
    def boundary(number: int, text: str) -> Message:
        return row(number, Role.USER, Text(text), visibility=Visibility.MODEL, is_compressed=True)

    call = ToolCall("s", "chat_summarized", "{}")
    shown = prompt(
        row(1, Role.SYSTEM, Text("rules"), visibility=Visibility.MODEL),
        row(2, Role.USER, Text("old")),
        boundary(3, "first summary"),
        row(4, Role.ASSISTANT, call, visibility=Visibility.USER, is_compressed=True),
        row(5, Role.TOOL, done("s"), is_compressed=True),
        row(6, Role.USER, Text("older")),
        boundary(7, "second summary"),
        row(8, Role.USER, Text("new")),
    )
    assert shown == (
        PromptMessage(Role.SYSTEM, (Text("rules"),)),
        PromptMessage(Role.USER, (Text("second summary"),)),
        PromptMessage(Role.USER, (Text("new"),)),
    )


def test_blocks_follow_the_leading_system_rows_in_their_order() -> None:
    system_prompt = SystemPrompt(
        is_subagent=True,
        instruction_files=(ContextFile("AGENTS.md", "be kind"),),
        skills=(Skill("deploy", "how to deploy"),),
        user_instructions=" answer in French ",
        mode=Mode.EXPLORE,
        has_advisor=True,
    )
    shown = prompt(
        row(1, Role.SYSTEM, Text("rules"), visibility=Visibility.MODEL),
        row(2, Role.USER, Text("hi")),
        row(3, Role.SYSTEM, Text("later"), visibility=Visibility.MODEL),
        system_prompt=system_prompt,
    )
    texts = [part.text for message in shown for part in message.content if isinstance(part, Text)]
    assert [message.role for message in shown] == [Role.SYSTEM] * 7 + [Role.USER, Role.SYSTEM]
    assert texts[:2] == ["rules", SUBAGENT]
    assert texts[2].endswith(
        "<instructions>\nInstructions from AGENTS.md:\nbe kind\n</instructions>"
    )
    assert "deploy" in texts[3]
    assert texts[4] == "<user_instructions>\nanswer in French\n</user_instructions>"
    assert texts[6:] == [ADVISOR, "hi", "later"]


def test_skills_of_the_workspace_are_listed_apart_with_who_wrote_them() -> None:
    skills = (Skill("build", "ours", "skills/build"), Skill("deploy", "mine"))
    (block,) = blocks_of(SystemPrompt(skills=skills))
    own, of_workspace = block.split("\n\n")
    assert own.splitlines()[1:] == ["- deploy: mine"]
    assert of_workspace.splitlines() == [WORKSPACE_SKILLS, "- build: ours"]
    (alone,) = blocks_of(SystemPrompt(skills=skills[:1]))
    assert alone == of_workspace


def test_descriptions_of_skills_are_bounded_together_the_users_own_first() -> None:
    ours = tuple(Skill(f"a{place}", "o" * 1024, f"skills/a{place}") for place in range(10))
    mine = tuple(Skill(f"b{place}", "m" * 1024) for place in range(10))
    (block,) = blocks_of(SystemPrompt(skills=(*ours, *mine)))
    assert (block.count("m" * 1024), block.count("o" * 1024)) == (10, 6)
    assert all(f"- {skill.name}" in block for skill in (*ours, *mine))
    assert block.endswith("- a8\n- a9")


def test_instructions_of_administrators_follow_those_of_plan_mode() -> None:
    (planned,) = blocks_of(SystemPrompt(mode=Mode.PLAN, plan_instructions=" Be brief. "))
    assert planned == f"{PLAN}\n\nBe brief."
    (unplanned,) = blocks_of(SystemPrompt(mode=Mode.PLAN))
    assert unplanned == PLAN


def test_a_long_instruction_file_is_cut_and_says_so() -> None:
    files = (ContextFile("LONG.md", "x" * 100_000),)
    (block,) = blocks_of(SystemPrompt(instruction_files=files))
    assert len(block) < 66_000
    assert "a part of it is missing" in block


def test_blank_text_and_thoughts_are_left_out_but_a_signed_thought_stays() -> None:
    signed = Reasoning("", provider_metadata='{"signature":"x"}')
    (shown,) = prompt(
        row(1, Role.ASSISTANT, Text(" \n"), Reasoning(" "), signed, Text("ok"), model_id="m")
    )
    assert shown == PromptMessage(Role.ASSISTANT, (signed, Text("ok")), "m")
    assert prompt(row(1, Role.ASSISTANT, Text(" "))) == ()


def test_parts_for_people_are_left_out_and_references_become_text() -> None:
    (shown,) = prompt(
        row(
            1,
            Role.USER,
            Source("1", "http://x"),
            Notice("psst"),
            Skill("s"),
            File("f", "image/png"),
            FileReference("a.py", 1, 2, "x = 1"),
            ContextFile("B.md", "be"),
        )
    )
    assert shown.content == (
        File("f", "image/png"),
        Text("a.py, lines 1 to 2:\n```\nx = 1\n```"),
        Text("Instructions from B.md:\nbe"),
    )
    assert prompt(row(1, Role.ASSISTANT, File("f", "image/png"))) == ()


def test_results_are_brought_to_their_call_in_the_order_of_the_calls() -> None:
    calls = (ToolCall("a", "t", "{}"), ToolCall("b", "t", "{}"))
    shown = prompt(
        row(1, Role.ASSISTANT, *calls),
        row(2, Role.TOOL, done("b")),
        row(3, Role.USER, Text("meanwhile")),
        row(4, Role.TOOL, done("a")),
    )
    assert shown == (
        PromptMessage(Role.ASSISTANT, calls),
        PromptMessage(Role.TOOL, (done("a"), done("b"))),
        PromptMessage(Role.USER, (Text("meanwhile"),)),
    )


def test_a_call_without_a_result_gets_one_and_a_second_result_is_left_out() -> None:
    calls = (ToolCall("a", "t", "{}"), ToolCall("b", "t", "{}"))
    shown = prompt(
        row(1, Role.ASSISTANT, *calls), row(2, Role.TOOL, done("a")), row(3, Role.TOOL, done("a"))
    )
    assert shown[1:] == (PromptMessage(Role.TOOL, (done("a"), given_up("b"))),)


def test_a_result_without_a_call_gets_one_if_its_tool_is_known() -> None:
    shown = prompt(row(1, Role.TOOL, done("x", "look")), row(2, Role.TOOL, done("y", "")))
    assert shown == (
        PromptMessage(Role.ASSISTANT, (ToolCall("x", "look", "{}"),)),
        PromptMessage(Role.TOOL, (done("x", "look"),)),
    )


def test_what_a_provider_executed_stays_in_its_message_and_nowhere_else() -> None:
    search = ToolCall("s", "web_search", "{}", provider_executed=True)
    found = ToolResult("s", "web_search", "[]", ToolOutcome.DONE, provider_executed=True)
    shown = prompt(row(1, Role.ASSISTANT, search, found, Text("so")), row(2, Role.TOOL, found))
    assert shown == (PromptMessage(Role.ASSISTANT, (search, found, Text("so"))),)


def test_ids_that_were_given_twice_or_have_odd_characters_are_made_good() -> None:
    first, again = ToolCall("c.1", "t", "[]"), ToolCall("c.1", "t", '{"a":1}')
    shown = prompt(
        row(1, Role.ASSISTANT, first),
        row(2, Role.TOOL, done("c.1")),
        row(3, Role.ASSISTANT, again),
        row(4, Role.TOOL, done("c.1")),
    )
    assert shown == (
        PromptMessage(Role.ASSISTANT, (ToolCall("c_1", "t", "{}"),)),
        PromptMessage(Role.TOOL, (done("c_1"),)),
        PromptMessage(Role.ASSISTANT, (ToolCall("c_1_2", "t", '{"a":1}'),)),
        PromptMessage(Role.TOOL, (done("c_1_2"),)),
    )


def parts() -> st.SearchStrategy[Part]:
    ids = st.sampled_from(["a", "b", "a.", ""])
    return st.one_of(
        st.builds(Text, st.sampled_from(["", "hi"])),
        st.builds(ToolCall, ids, st.just("t"), st.just("{}"), st.just(""), st.booleans()),
        st.builds(done, ids, st.sampled_from(["t", ""])),
    )


@given(
    st.lists(
        st.tuples(st.sampled_from([Role.USER, Role.ASSISTANT, Role.TOOL]), st.lists(parts())),
        max_size=8,
    )
)
def test_whatever_is_stored_every_local_call_has_exactly_one_result_right_after_it(
    rows: list[tuple[Role, list[Part]]],
) -> None:
    shown = prompt(*(row(number, role, *content) for number, (role, content) in enumerate(rows)))
    ids: list[str] = []
    expected: list[str] = []
    for message in shown:
        calls = [p for p in message.content if isinstance(p, ToolCall) and not p.provider_executed]
        if message.role is Role.TOOL:
            results = [p.tool_call_id for p in message.content if isinstance(p, ToolResult)]
            assert results == expected
            expected = []
        else:
            assert expected == []
            expected = [call.tool_call_id for call in calls]
            ids += expected
        assert message.content
    assert expected == []
    assert len(ids) == len(set(ids))


def rows_of_any_kind() -> st.SearchStrategy[list[Message]]:
    shapes = st.tuples(
        st.sampled_from(Role), st.lists(parts(), max_size=3), st.sampled_from(Visibility)
    )
    return st.lists(st.tuples(shapes, st.booleans()), max_size=8).map(
        lambda drawn: [
            row(number, role, *content, visibility=visibility, is_compressed=is_compressed)
            for number, ((role, content, visibility), is_compressed) in enumerate(drawn)
        ]
    )


@given(rows_of_any_kind(), rows_of_any_kind(), st.data())
def test_a_prompt_that_grew_equals_one_made_at_once(
    rows: list[Message], others: list[Message], data: st.DataObject
) -> None:
    growing = PromptBuilder()
    for length in range(len(rows) + 1):
        assert growing.of(rows[:length], NOTHING) == prompt(*rows[:length])
    # An edit takes messages away and puts others in their place.
    kept = data.draw(st.integers(0, len(rows)))
    edited = [*rows[:kept], *others]
    assert growing.of(edited, NOTHING) == prompt(*edited)


def test_only_what_was_added_is_read_again() -> None:
    rows = [row(1, Role.USER, Text("a")), row(2, Role.ASSISTANT, ToolCall("c", "t", "{}"))]
    growing = PromptBuilder()
    growing.of(rows, NOTHING)
    rows.append(row(3, Role.TOOL, done("c")))
    first = growing.of(rows, NOTHING)
    rows.append(row(4, Role.ASSISTANT, Text("b")))
    second = growing.of(rows, NOTHING)
    assert all(old is new for old, new in zip(first, second, strict=False))


@pytest.mark.parametrize("mode", Mode)
def test_no_block_is_empty(mode: Mode) -> None:
    assert all(block.strip() for block in blocks_of(SystemPrompt(mode=mode)))
