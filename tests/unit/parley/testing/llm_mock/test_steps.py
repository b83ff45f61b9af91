from itertools import islice

import pytest

from parley.testing.llm_mock.behaviour.options import Behaviour, Fault, FaultKind
from parley.testing.llm_mock.exchange.dialect import Event
from parley.testing.llm_mock.playback.steps import Drop, Pause, Reset, Send, Stall, Step, course
from parley.testing.llm_mock.providers.anthropic.messages import AnthropicMessages

FRAMING = AnthropicMessages()
EVENTS = (
    Event("", b"start"),
    Event("", b'{"text":"a"}', is_delta=True),
    Event("", b'{"text":"b"}', is_delta=True),
    Event("", b"stop"),
)
START, A, B, STOP = (Send(b"data: %b\n\n" % event.data) for event in EVENTS)
PING = Send(b'event: ping\ndata: {"type":"ping"}\n\n')


def steps(behaviour: Behaviour = Behaviour()) -> list[Step]:  # noqa: B008 (immutable)
    return list(course(EVENTS, FRAMING, behaviour, behaviour.fault))


def test_without_wishes_everything_is_sent_at_once() -> None:
    assert steps() == [START, A, B, STOP]


def test_the_first_piece_waits_for_the_latency_and_the_others_for_the_delay() -> None:
    assert steps(Behaviour(latency_s=2, delay_s=0.5)) == [
        START,
        Pause(2),
        A,
        Pause(0.5),
        B,
        STOP,
    ]


def test_heartbeats_fill_a_long_wait() -> None:
    assert steps(Behaviour(latency_s=2.5, ping_s=1)) == [
        START,
        Pause(1),
        PING,
        Pause(1),
        PING,
        Pause(0.5),
        A,
        B,
        STOP,
    ]


def test_a_drip_sends_one_byte_at_a_time() -> None:
    dripped = steps(Behaviour(drip_s=1))
    assert dripped[:4] == [Pause(1), Send(b"d"), Pause(1), Send(b"a")]
    whole = b"".join(step.data for step in (START, A, B, STOP))
    assert b"".join(step.data for step in dripped if isinstance(step, Send)) == whole


def test_an_endless_answer_repeats_its_last_piece() -> None:
    behaviour = Behaviour(is_endless=True, delay_s=1)
    endless = islice(course(EVENTS, FRAMING, behaviour, None), 9)
    assert list(endless) == [START, A, Pause(1), B, Pause(1), B, Pause(1), B, Pause(1)]


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault(FaultKind.CUT, 0), []),
        (Fault(FaultKind.CUT, 2), [START, A]),
        (Fault(FaultKind.CUT, 9), [START, A, B, STOP]),
        (Fault(FaultKind.CUT_BYTE, 3), [Send(b"dat")]),
        (Fault(FaultKind.CUT_BYTE, 15), [START, Send(b"da")]),
        (Fault(FaultKind.DROP, 1), [START, Drop()]),
        (Fault(FaultKind.RESET, 1), [START, Reset()]),
        (Fault(FaultKind.STALL, 1, 30), [START, Pause(30), A, B, STOP]),
        (
            Fault(FaultKind.BAD_UTF8, 1),
            [START, Send(b'data: {"text":"\xff\xfe\x80a"}\n\n'), B, STOP],
        ),
        (Fault(FaultKind.BAD_JSON, 1), [START, Send(b'data: {"text\n\n'), B, STOP]),
        (Fault(FaultKind.NUL, 1), [START, Send(b'data: {"text":"\x00\x00a"}\n\n'), B, STOP]),
        (Fault(FaultKind.HUGE_LINE, 1, 5), [START, Send(b"data: xxxxx\n\n"), A, B, STOP]),
    ],
)
def test_a_fault_strikes_after_so_many_events(fault: Fault, expected: list[Step]) -> None:
    assert steps(Behaviour(fault=fault)) == expected


def test_a_stall_for_good_stands_before_the_rest() -> None:
    assert steps(Behaviour(fault=Fault(FaultKind.STALL, 1)))[:2] == [START, Stall()]


def test_an_error_is_the_last_event() -> None:
    *_, before, last = steps(Behaviour(fault=Fault(FaultKind.ERROR, 2)))
    assert before == A
    assert isinstance(last, Send)
    assert last.data.startswith(b"event: error\n")


def test_noise_does_not_end_the_stream() -> None:
    start, noise, *rest = steps(Behaviour(fault=Fault(FaultKind.GARBAGE, 1)))
    assert (start, rest) == (START, [A, B, STOP])
    assert isinstance(noise, Send)
