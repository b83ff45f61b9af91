"""Answers that are cut out of one piece are those that would be put together."""

from collections.abc import Iterable

import pytest

from parley.testing.llm_mock.behaviour.options import Behaviour
from parley.testing.llm_mock.exchange.dialect import Dialect
from parley.testing.llm_mock.exchange.placeholders import PlaceholderValues, identity_of
from parley.testing.llm_mock.exchange.reply import reply_to
from parley.testing.llm_mock.exchange.request import ParsedRequest
from parley.testing.llm_mock.playback.encoded import (
    EncodedAnswer,
    in_chunks,
    prepare_stream,
    prepare_whole,
)
from parley.testing.llm_mock.playback.steps import Framed, Send, Step, course, delayed, evenly
from parley.testing.llm_mock.providers.anthropic.messages import AnthropicMessages
from parley.testing.llm_mock.providers.openai.completions import ChatCompletions
from parley.testing.llm_mock.providers.openai.responses import OpenAIResponses

BEHAVIOUR = Behaviour(deltas=3, reasoning=2, wait_s=3, latency_s=2, delay_s=1)
REPLY = reply_to(ParsedRequest("mock", True, "hello"), BEHAVIOUR, seed=0)
FILLING = PlaceholderValues(identity_of(0, 1, is_stored=False, is_reasoned=True), 12, 3, 4)
DIALECTS = (AnthropicMessages(), ChatCompletions(), OpenAIResponses())


def joined(steps: Iterable[Step]) -> list[Step]:
    """Return the steps with what is sent without a pause between in one piece."""
    whole: list[Step] = []
    for step in steps:
        if whole and isinstance(last := whole[-1], Send) and isinstance(step, Send):
            whole[-1] = Send(last.data + step.data)
        else:
            whole.append(step)
    return whole


def steps_of(prepared: EncodedAnswer, dialect: Dialect, behaviour: Behaviour) -> list[Step]:
    steps = course(prepared.filled(FILLING), Framed(dialect), behaviour, None)
    answer = in_chunks(FILLING.fill(prepared.head), steps)
    return joined(delayed(answer, behaviour.wait_s))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("behaviour", [BEHAVIOUR, Behaviour(), Behaviour(delay_s=1)])
def test_an_even_stream_is_the_course_of_its_events(dialect: Dialect, behaviour: Behaviour) -> None:
    prepared = prepare_stream(dialect, REPLY, is_checksummed=False)
    pieces = prepared.pieces(FILLING.fill(prepared.burst))
    assert joined(evenly(pieces, behaviour)) == steps_of(prepared, dialect, behaviour)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_even_whole_answer_waits_before_its_body(dialect: Dialect) -> None:
    prepared = prepare_whole(dialect, REPLY)
    pieces = prepared.pieces(FILLING.fill(prepared.burst))
    assert joined(evenly(pieces, BEHAVIOUR)) == steps_of(prepared, dialect, BEHAVIOUR)
