"""The timed steps of one answer, including its faults."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, repeat
from typing import Protocol, assert_never

from parley.testing.llm_mock.behaviour.options import Behaviour, Fault, FaultKind
from parley.testing.llm_mock.exchange.dialect import Event

#: Faults that end the stream, and those that replace one event.
ENDINGS = frozenset({FaultKind.CUT, FaultKind.DROP, FaultKind.RESET, FaultKind.ERROR})
REPLACING = frozenset({FaultKind.BAD_JSON, FaultKind.BAD_UTF8, FaultKind.NUL})
#: Name of an event whose data is framed already.
AS_IS = "as is"

TEXT_BEGINNINGS = (b'"text":"', b'"thinking":"', b'"content":"', b'"delta":"', b'"arguments":"')
INVALID_UTF8, NULS = b"\xff\xfe\x80", b"\x00\x00"


@dataclass(frozen=True, slots=True)
class Send:
    """Send a part of the body."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait, in seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Stall:
    """Send nothing more, and keep the connection open."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Close the connection in the middle of the body."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Reset the connection."""


Step = Send | Pause | Stall | Drop | Reset


class Framing(Protocol):
    """The part of a protocol that the steps of an answer need."""

    def framed(self, event: Event) -> bytes:
        """Return the encoded event."""
        ...

    def error_event(self) -> Event:
        """Return an event that ends a stream with an error."""
        ...

    @property
    def heartbeat(self) -> bytes:
        """Return the framed heartbeat of a silent stream."""
        ...


@dataclass(frozen=True, slots=True)
class Framed:
    """A framing that does not change events that are framed already."""

    framing: Framing

    def framed(self, event: Event) -> bytes:
        """Return the encoded event."""
        return event.data if event.name == AS_IS else self.framing.framed(event)

    def error_event(self) -> Event:
        """Return an event that ends a stream with an error."""
        return self.framing.error_event()

    @property
    def heartbeat(self) -> bytes:
        """Return the framed heartbeat of a silent stream."""
        return self.framing.heartbeat


def course(
    events: Iterable[Event], framing: Framing, behaviour: Behaviour, fault: Fault | None
) -> Iterator[Step]:
    """Yield the steps of an answer; the body is complete when they end."""
    steps = _spoilt(_paced(events, framing, behaviour), framing, fault)
    return _dripped(steps, behaviour.drip_s) if behaviour.drip_s else steps


def evenly(pieces: Iterable[bytes], behaviour: Behaviour) -> Iterator[Step]:
    """Yield the steps of an answer without faults: its beginning, then its deltas."""
    pauses = chain((behaviour.wait_s, behaviour.latency_s), repeat(behaviour.delay_s))
    for piece, pause_s in zip(pieces, pauses, strict=False):
        if pause_s:
            yield Pause(pause_s)
        yield Send(piece)


def delayed(steps: Iterable[Step], wait_s: float) -> Iterator[Step]:
    """Yield a pause, then the steps."""
    if wait_s:
        yield Pause(wait_s)
    yield from steps


def corrupted(data: bytes, poison: bytes) -> bytes:
    """Return the data of an event with poison in its text, or at its end if it has none."""
    for beginning in TEXT_BEGINNINGS:
        before, found, after = data.partition(beginning)
        if found:
            return before + found + poison + after
    return data + poison


def _paced(
    events: Iterable[Event], framing: Framing, behaviour: Behaviour
) -> Iterator[Event | Pause | Send]:
    """Yield the events with pauses and heartbeats between them."""
    pause_s = behaviour.latency_s
    last: Event | None = None
    for event in events:
        if behaviour.is_endless and last is not None and not event.is_delta:
            yield from _endless(last, framing, behaviour)
        if event.is_delta:
            yield from _pause(pause_s, framing, behaviour)
            pause_s = behaviour.delay_s
            last = event
        yield event


def _endless(
    event: Event, framing: Framing, behaviour: Behaviour
) -> Iterator[Event | Pause | Send]:
    while True:
        yield from _pause(behaviour.delay_s, framing, behaviour)
        yield event


def _pause(seconds: float, framing: Framing, behaviour: Behaviour) -> Iterator[Pause | Send]:
    while behaviour.ping_s and seconds > behaviour.ping_s:
        yield Pause(behaviour.ping_s)
        yield Send(framing.heartbeat)
        seconds -= behaviour.ping_s
    if seconds:
        yield Pause(seconds)


def _spoilt(
    steps: Iterable[Event | Pause | Send], framing: Framing, fault: Fault | None
) -> Iterator[Step]:
    """Yield the steps up to the fault, the fault, and the rest that it leaves."""
    sent_events = sent_bytes = 0
    for step in steps:
        if not isinstance(step, Event):
            yield step
            continue
        data = framing.framed(step)
        if fault is not None and fault.kind is FaultKind.CUT_BYTE:
            if sent_bytes + len(data) > fault.after:
                yield Send(data[: fault.after - sent_bytes])
                return
            sent_bytes += len(data)
        elif fault is not None and sent_events == fault.after:
            yield from _strike(fault, step, framing)
            if fault.kind in ENDINGS:
                return
            if fault.kind in REPLACING:
                data = b""
        sent_events += 1
        if data:
            yield Send(data)


def _strike(fault: Fault, event: Event, framing: Framing) -> Iterator[Step]:
    """Yield the steps that the fault inserts before an event or in its place."""
    match fault.kind:
        case FaultKind.CUT | FaultKind.CUT_BYTE:
            pass
        case FaultKind.DROP:
            yield Drop()
        case FaultKind.RESET:
            yield Reset()
        case FaultKind.STALL:
            yield Pause(fault.amount) if fault.amount else Stall()
        case FaultKind.ERROR:
            yield Send(framing.framed(framing.error_event()))
        case FaultKind.GARBAGE:
            noise = blake2b(event.data).digest()
            yield Send(noise + b"\n\ndata: <" + noise.hex().encode() + b">\n\n")
        case FaultKind.BAD_JSON:
            yield Send(framing.framed(_unlike(event, event.data[: len(event.data) // 2])))
        case FaultKind.BAD_UTF8:
            yield Send(framing.framed(event._replace(data=corrupted(event.data, INVALID_UTF8))))
        case FaultKind.NUL:
            yield Send(framing.framed(event._replace(data=corrupted(event.data, NULS))))
        case FaultKind.HUGE_LINE:
            yield Send(framing.framed(_unlike(event, b"x" * int(fault.amount))))
        case _:
            assert_never(fault.kind)


def _unlike(event: Event, data: bytes) -> Event:
    return Event("" if event.name == AS_IS else event.name, data)


def _dripped(steps: Iterable[Step], drip_s: float) -> Iterator[Step]:
    """Yield the same steps, one byte at a time."""
    for step in steps:
        if not isinstance(step, Send):
            yield step
            continue
        for place in range(len(step.data)):
            yield Pause(drip_s)
            yield Send(step.data[place : place + 1])
