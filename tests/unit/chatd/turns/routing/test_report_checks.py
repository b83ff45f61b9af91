"""Reports with a schema: checked, sent back once, and told to the parent."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from chatd.chats.domain.agents import Agent
from chatd.chats.domain.chat import Status
from chatd.content.domain.messages import Visibility
from chatd.content.domain.orders import (
    DIALECT,
    AgentOrders,
    checked_report,
    unsupported_keywords,
)
from chatd.content.domain.parts import Text
from chatd.models.domain.language_model import Finished, ModelEvent, ModelRequest, TextDelta
from chatd.primitives.domain.ids import ChatId
from chatd.turns.domain.agent_reports import unread_reports
from chatd.turns.domain.system_prompt import SystemPrompt, blocks_of
from support.chatd.turns.turn_stage import SETUP, Stage, tool

SCHEMA = '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}'
ORDERS = AgentOrders(report_schema_json=SCHEMA)
WITH_SCHEMA = replace(SETUP, system_prompt=SystemPrompt(is_subagent=True, orders=ORDERS))


def answering(*answers: str) -> Stage:
    """Return an agent whose model gives one answer after the other."""
    left = list(answers)

    def play(request: ModelRequest) -> Iterable[ModelEvent]:
        yield TextDelta(left.pop(0))
        yield Finished()

    return Stage(play, setup=WITH_SCHEMA)


def sent_back(stage: Stage) -> list[str]:
    return [
        text
        for message, (_, text) in zip(stage.messages, stage.texts, strict=True)
        if message.visibility is Visibility.MODEL
    ]


async def test_a_report_that_matches_its_schema_ends_the_turn() -> None:
    stage = answering('{"n": 1}')
    await stage.ask()
    assert (stage.status, sent_back(stage)) == (Status.WAITING, [])


async def test_an_invalid_report_is_sent_back_once_with_what_is_wrong() -> None:
    stage = answering('{"n": "one"}', "I give up.")
    await stage.ask()
    (problem,) = sent_back(stage)
    assert "- $.n: 'one' is not of type 'integer'" in problem
    assert (stage.status, stage.texts[-1][1]) == (Status.WAITING, "I give up.")


async def test_an_invalid_report_can_be_corrected_and_the_next_turn_is_checked_again() -> None:
    stage = answering("one", '{"n": 1}', "two", '{"n": 2}')
    await stage.ask()
    await stage.ask("again")
    assert len(sent_back(stage)) == 2
    assert stage.texts[-1][1] == '{"n": 2}'


def test_the_orders_of_an_agent_are_in_its_prompt() -> None:
    orders = AgentOrders("reviewer", "Read it all.", ("read_file",), SCHEMA)
    text = "\n".join(blocks_of(SystemPrompt(is_subagent=True, orders=orders)))
    assert SCHEMA in text
    assert "<instructions>\nRead it all.\n</instructions>" in text


async def test_an_agent_has_only_the_tools_of_its_type() -> None:
    orders = AgentOrders("reader", "Read.", ("read_file",))
    setup = replace(SETUP, system_prompt=SystemPrompt(is_subagent=True, orders=orders))
    stage = Stage(
        lambda _: (TextDelta("done"), Finished()), tool("read_file"), tool("execute"), setup=setup
    )
    await stage.ask()
    assert [spec.name for spec in stage.model.requests[0].tools] == ["read_file"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('```json\n{"n": 1}\n```', ""),
        ('{"n": 1, "m": 2}', ""),
        ("{}", "$: 'n' is a required property"),
        ("[" * 100_000, "it is nested too deeply"),
        ('Here it is: {"n": 1}', "it is not JSON"),
        ('{"n": NaN}', "it is not JSON"),
        ('{"n": 1e999}', "it is not JSON"),
        ('{"n": 1, "m": "\\ud83d"}', "it is not JSON"),
        (f'{{"n": 1, "m": "{"x" * 200_000}"}}', "it has over 200000 characters"),
    ],
)
def test_a_report_is_compared_with_its_schema(text: str, problem: str) -> None:
    checked = checked_report(text, SCHEMA)
    assert "".join(checked.problems).startswith(problem)
    assert bool(checked.problems) is bool(problem)


def test_schemas_that_could_take_very_long_are_unsupported() -> None:
    nested: dict[str, object] = {}
    for _ in range(30):
        nested = {"allOf": [nested], "unevaluatedProperties": True}
    assert set(unsupported_keywords(nested)) == {"unevaluatedProperties"}
    assert set(unsupported_keywords({"$schema": "http://json-schema.org/draft-07/schema#"})) == {
        "$schema"
    }
    assert set(unsupported_keywords({"$schema": DIALECT, "properties": {"pattern": {}}})) == set()


def test_a_parent_learns_that_a_report_is_invalid() -> None:
    child = ChatId("00000000-0000-0000-0000-0000000000a1")
    agent = Agent(child, "First", False, Status.WAITING, True, "{}", None, 0, 7, orders=ORDERS)
    message = unread_reports((), (agent,))
    assert message is not None
    (text,) = message.content
    assert isinstance(text, Text)
    assert "does not match the schema: $: 'n' is a required property." in text.text
