"""Which requests of a user are let in, and in what order."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from gateway.api.contract import access_table
from gateway.http.limits.admission import (
    ACTIVE_S,
    BUSY_AFTER_S,
    WAIT_S_MAX,
    Admission,
    AdmissionLimits,
    Duration,
    Requester,
)
from gateway.http.problems.errors import HttpProblem
from parley.clock import FakeClock
from support.chatd.streams.held_hubs import settle
from support.gateway.routes import every_route

LIMITS = AdmissionLimits(
    requests_max=100,
    user_requests_max=40,
    address_requests_max=60,
    user_long_running_max=3,
    user_calls_max=2,
    opened_s=0.0,
)


class Client:
    """A client that can go away."""

    def __init__(self) -> None:
        self._tell: list[Callable[[], object]] = []
        self.is_gone = False

    def when_gone(self, tell: Callable[[], object]) -> Callable[[], object]:
        self._tell.append(tell)
        return lambda: self._tell.remove(tell)

    def go(self) -> None:
        self.is_gone = True
        for tell in list(self._tell):
            tell()

    @property
    def is_waited_for(self) -> bool:
        return bool(self._tell)


class Requests:
    """Requests that are let in, and stay until they are told to end."""

    def __init__(self, tasks: asyncio.TaskGroup, limits: AdmissionLimits = LIMITS) -> None:
        self.clock = FakeClock()
        self.admission = Admission(limits, self.clock)
        self.begun: list[str] = []
        self.opens = True
        self.refused: list[tuple[str, int, str]] = []
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks = tasks

    def make(
        self,
        name: str,
        duration: Duration,
        *,
        user: str = "u1",
        address: str = "a1",
        client: Client | None = None,
        waited_s: float = 0.0,
    ) -> None:
        self._ends[name] = asyncio.Event()
        requester = Requester(user, address, client, waited_s)
        self._tasks.create_task(self._run(name, requester, duration))

    def end(self, name: str) -> None:
        self._ends[name].set()

    def end_all(self) -> None:
        for end in self._ends.values():
            end.set()

    async def settle(self) -> None:
        """Let everything happen that can."""
        await settle()

    async def _run(self, name: str, requester: Requester, duration: Duration) -> None:
        try:
            async with self.admission.admitted(requester, duration) as is_open:
                self.begun.append(name)
                if self.opens:
                    is_open()
                await self._ends[name].wait()
        except HttpProblem as refusal:
            self.refused.append((name, refusal.status, refusal.code))


async def test_requests_of_one_user_wait_for_their_turn_in_order() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        requests = Requests(tasks)
        for name in "abcd":
            requests.make(name, Duration.SHORT)
        requests.make("other", Duration.SHORT, user="u2")
        await requests.settle()
        assert requests.begun == ["a", "b", "other"]
        requests.end("b")
        await requests.settle()
        assert requests.begun == ["a", "b", "other", "c"]
        requests.end_all()
    assert requests.begun == ["a", "b", "other", "c", "d"]
    assert requests.refused == []


async def test_fewer_of_a_user_are_carried_out_while_another_one_makes_requests() -> None:
    limits = replace(LIMITS, user_calls_max=3, shared_user_calls_max=1)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        requests = Requests(tasks, limits)
        for name in "abc":
            requests.make(name, Duration.SHORT)
        requests.make("other", Duration.SHORT, user="u2")
        for name in "def":
            requests.make(name, Duration.SHORT)
        await requests.settle()
        assert requests.begun == ["a", "b", "c", "other"]
        for name in "ab":
            requests.end(name)
        await requests.settle()
        assert requests.begun == ["a", "b", "c", "other"]
        requests.end("c")
        await requests.settle()
        assert requests.begun == ["a", "b", "c", "other", "d"]
        # The other one was active long ago; its request is still carried out.
        requests.clock.advance(ACTIVE_S + 1)
        requests.make("g", Duration.SHORT)
        await requests.settle()
        assert requests.begun == ["a", "b", "c", "other", "d", "e", "f"]
        requests.end("d")
        await requests.settle()
        assert requests.begun == ["a", "b", "c", "other", "d", "e", "f", "g"]
        requests.end_all()


async def test_a_request_that_waits_is_dropped_with_its_client() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        requests, client = Requests(tasks), Client()
        requests.make("a", Duration.SHORT)
        requests.make("b", Duration.SHORT, client=client)
        requests.make("gone", Duration.SHORT, client=client)
        requests.make("c", Duration.SHORT)
        await requests.settle()
        client.go()
        await requests.settle()
        assert requests.refused == [("gone", 499, "CLIENT_CLOSED_REQUEST")]
        requests.end_all()
    # The one that was being carried out is carried out; the one behind the dropped one has a turn.
    assert requests.begun == ["a", "b", "c"]
    assert not client.is_waited_for


async def test_a_request_whose_client_is_gone_already_is_not_carried_out() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        requests, client = Requests(tasks), Client()
        client.go()
        requests.make("gone", Duration.SHORT, client=client)
    assert (requests.begun, requests.refused) == ([], [("gone", 499, "CLIENT_CLOSED_REQUEST")])


async def test_a_cancelled_request_gives_its_turn_to_the_next() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        requests = Requests(tasks)
        for name in "ab":
            requests.make(name, Duration.SHORT)
        await requests.settle()
        requester = Requester("u1", "a1", None)

        async def wait() -> None:
            async with requests.admission.admitted(requester, Duration.SHORT):
                raise AssertionError("it was cancelled")

        waiting = tasks.create_task(wait())
        requests.make("c", Duration.SHORT)
        await requests.settle()
        requests.end("a")
        waiting.cancel()
        await requests.settle()
        assert requests.begun == ["a", "b", "c"]
        requests.end_all()


async def test_requests_that_last_have_a_bound_of_their_own() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        requests = Requests(tasks)
        for name in "abcd":
            requests.make(name, Duration.LONG_RUNNING)
        requests.make("other", Duration.LONG_RUNNING, user="u2")
        requests.make("brief", Duration.SHORT)
        await requests.settle()
        assert requests.begun == ["a", "b", "c", "other", "brief"]
        assert requests.refused == [("d", 429, "TOO_MANY_LONG_RUNNING_REQUESTS")]
        requests.end("a")
        await requests.settle()
        requests.make("e", Duration.LONG_RUNNING)
        await requests.settle()
        assert requests.begun[-1] == "e"
        requests.end_all()


async def test_streams_of_one_user_are_opened_a_few_at_a_time() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        requests = Requests(tasks)
        requests.opens = False
        for name in "abc":
            requests.make(name, Duration.STREAM)
        await requests.settle()
        assert requests.begun == ["a", "b"]
        requests.opens = True
        requests.end("a")
        await requests.settle()
        requests.make("d", Duration.STREAM)
        await requests.settle()
        # The third is open, so that another one can be opened beside the second.
        assert requests.begun == ["a", "b", "c", "d"]
        requests.end_all()


@pytest.mark.parametrize("duration", [Duration.STREAM, Duration.LONG_RUNNING])
async def test_streams_are_opened_more_slowly_while_another_user_makes_requests(
    duration: Duration,
) -> None:
    limits = replace(LIMITS, opened_s=0.2)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        requests = Requests(tasks, limits)
        requests.make("other", Duration.SHORT, user="u2")
        for name in "abc":
            requests.make(name, duration)
        await requests.settle()
        # Both are open, and keep their slots.
        assert requests.begun == ["other", "a", "b"]
        while "c" not in requests.begun:
            await requests.settle()
        requests.end_all()


async def test_a_request_leaves_as_much_time_to_others_as_it_took() -> None:
    limits = replace(LIMITS, opened_s=0.2)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        requests = Requests(tasks, limits)
        requests.make("other", Duration.SHORT, user="u2")
        for name in "abc":
            requests.make(name, Duration.SHORT)
        await requests.settle()
        requests.clock.advance(ACTIVE_S / 2)
        requests.end("a")
        await requests.settle()
        # The slot of the one that ended is kept.
        assert requests.begun == ["other", "a", "b"]
        while "c" not in requests.begun:
            await requests.settle()
        requests.end_all()


@pytest.mark.parametrize(("waits_s", "is_kept"), [(BUSY_AFTER_S, True), (0.5, False)])
async def test_who_sends_more_than_may_run_all_the_time_leaves_more_time_to_others(
    waits_s: float, is_kept: bool
) -> None:
    """A user whose requests wait only now and then is not slowed down."""
    limits = replace(LIMITS, opened_s=0.0, busy_s=3600.0)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        requests = Requests(tasks, limits)
        requests.make("other", Duration.SHORT, user="u2")
        for name in "abc":
            requests.make(name, Duration.SHORT)
        await requests.settle()
        requests.clock.advance(waits_s)
        requests.end("a")
        await requests.settle()
        assert requests.begun == ["other", "a", "b", *([] if is_kept else ["c"])]
        requests.make("c2", Duration.SHORT)
        requests.clock.advance(ACTIVE_S)
        # The other user is not active any more, so that nothing is kept for it.
        requests.end("b")
        await requests.settle()
        assert requests.begun[-1] == ("c" if is_kept else "c2")
        requests.end_all()


@pytest.mark.parametrize(
    ("took_s", "is_busy", "kept_s"),
    [(0.05, False, 0.05), (2.0, False, 0.1), (0.05, True, 0.15), (2.0, True, 0.5)],
)
def test_a_slot_is_kept_three_times_as_long_for_who_sends_more_than_may_run(
    took_s: float, is_busy: bool, kept_s: float
) -> None:
    assert AdmissionLimits().kept_s(took_s, is_busy=is_busy) == pytest.approx(kept_s)


async def test_the_time_that_requests_wait_begins_anew_when_none_waits() -> None:
    limits = replace(LIMITS, opened_s=0.0, busy_s=3600.0)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        requests = Requests(tasks, limits)
        requests.make("other", Duration.SHORT, user="u2")
        for names in ("abc", "def", "ghi"):
            for name in names:
                requests.make(name, Duration.SHORT)
            await requests.settle()
            requests.clock.advance(BUSY_AFTER_S * 0.9)
            for name in names:
                requests.end(name)
            await requests.settle()
        assert requests.begun == ["other", *"abcdefghi"]
        requests.end_all()


async def test_a_request_that_waited_too_long_before_its_start_waits_no_longer() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        requests = Requests(tasks)
        for name in "ab":
            requests.make(name, Duration.SHORT, waited_s=WAIT_S_MAX)
        await requests.settle()
        assert requests.begun == ["a", "b"]
        requests.make("c", Duration.SHORT, waited_s=WAIT_S_MAX)
        while not requests.refused:
            await requests.settle()
        assert requests.refused == [("c", 429, "TOO_MANY_REQUESTS")]
        requests.end_all()


async def test_refusals_of_long_running_requests_are_slowed_down_like_their_starts() -> None:
    limits = replace(LIMITS, user_long_running_max=1, opened_s=0.2)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        requests = Requests(tasks, limits)
        requests.make("other", Duration.SHORT, user="u2")
        for name in "abc":
            requests.make(name, Duration.LONG_RUNNING)
        await requests.settle()
        assert requests.begun == ["other", "a"]
        # The slot of the refused one is kept, so that the next one waits for its refusal.
        assert [name for name, _, _ in requests.refused] == ["b"]
        while len(requests.refused) < 2:
            await requests.settle()
        requests.end_all()


async def test_one_user_opens_streams_at_once_while_no_other_makes_requests() -> None:
    limits = replace(LIMITS, opened_s=3600.0)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        requests = Requests(tasks, limits)
        for name in "abcd":
            requests.make(name, Duration.STREAM)
        await requests.settle()
        assert requests.begun == ["a", "b", "c", "d"]
        requests.end_all()


async def test_one_user_cannot_have_all_streams() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        requests = Requests(tasks)
        for number in range(41):
            requests.make(f"stream {number}", Duration.STREAM)
        requests.make("other", Duration.STREAM, user="u2")
        await requests.settle()
        assert requests.refused == [("stream 40", 429, "TOO_MANY_REQUESTS")]
        assert requests.begun[-1] == "other"
        requests.end_all()


async def test_one_address_cannot_have_all_streams_with_several_users() -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        requests = Requests(tasks)
        for number in range(61):
            requests.make(f"stream {number}", Duration.STREAM, user=f"u{number % 2}")
        requests.make("other", Duration.STREAM, user="u9", address="a2")
        await requests.settle()
        assert requests.refused == [("stream 60", 429, "TOO_MANY_REQUESTS")]
        assert requests.begun[-1] == "other"
        requests.end_all()


async def test_when_all_places_are_taken_the_server_is_busy() -> None:
    limits = AdmissionLimits(requests_max=2)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        requests = Requests(tasks, limits)
        for number in range(3):
            requests.make(f"{number}", Duration.STREAM, user=f"u{number}", address=f"a{number}")
        await requests.settle()
        assert requests.refused == [("2", 503, "SERVER_BUSY")]
        requests.end_all()


async def test_every_route_that_lasts_is_a_route() -> None:
    served = {(route.method, route.path) for route in every_route()}
    lasting = (each for each, rule in access_table().items() if rule.duration is not Duration.SHORT)
    assert [route for route in lasting if route not in served] == []


@pytest.mark.parametrize("suffix", ["/events", "/terminal", "/content", "/export"])
async def test_routes_that_stream_are_not_taken_for_brief(suffix: str) -> None:
    streaming = [
        (route.method, route.path)
        for route in every_route()
        if route.method == "GET" and route.path.startswith("/api/") and route.path.endswith(suffix)
    ]
    assert streaming
    access = access_table()
    assert [route for route in streaming if access[route].duration is Duration.SHORT] == []
