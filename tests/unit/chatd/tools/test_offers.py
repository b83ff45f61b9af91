"""Tools are asked for once in a while, and anew when they may be others."""

import pytest

from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.tools import Executor, ExecutorUnreachable, Outcome, ToolSpec
from chatd.primitives.domain.ids import OwnerId
from chatd.tools.catalogue_cache import GOOD_FOR_S, INCOMPLETE_GOOD_FOR_S, KeptOffers, Offer, Place
from parley.clock import FakeClock

ANN = Place("one", OwnerId("ann"))
BEN = Place("one", OwnerId("ben"))
TOOL = ToolSpec("t", "", "{}", Executor.MCPGATEWAY, "g")


class Servers:
    """What is offered, and how often it was asked for."""

    def __init__(self, offer: Offer) -> None:
        self.offer = offer
        self.asked = 0

    async def ask(self) -> Offer:
        self.asked += 1
        return self.offer


async def done(outcome: ToolOutcome) -> Outcome:
    return Outcome(outcome, "{}")


async def test_each_owner_is_offered_tools_once_in_a_while() -> None:
    clock, servers = FakeClock(), Servers(Offer((TOOL,)))
    offers = KeptOffers(clock)
    for place in (ANN, ANN, BEN, ANN):
        assert await offers.at(place, servers.ask) == (TOOL,)
    assert servers.asked == 2
    clock.advance(GOOD_FOR_S)
    await offers.at(ANN, servers.ask)
    assert servers.asked == 3


async def test_an_offer_that_lacks_something_is_asked_for_again_soon() -> None:
    clock, servers = FakeClock(), Servers(Offer((), is_complete=False))
    offers = KeptOffers(clock)
    await offers.at(ANN, servers.ask)
    servers.offer = Offer((TOOL,))
    clock.advance(INCOMPLETE_GOOD_FOR_S)
    assert await offers.at(ANN, servers.ask) == (TOOL,)


async def test_news_of_servers_make_every_offer_old() -> None:
    servers = Servers(Offer((TOOL,)))
    offers = KeptOffers(FakeClock())
    await offers.at(ANN, servers.ask)
    offers.forget()
    await offers.at(ANN, servers.ask)
    assert servers.asked == 2


async def test_news_that_come_while_an_offer_is_under_way_make_it_old() -> None:
    servers = Servers(Offer((TOOL,)))
    offers = KeptOffers(FakeClock())

    async def ask() -> Offer:
        offer = await servers.ask()
        offers.forget()
        return offer

    await offers.at(ANN, ask)
    await offers.at(ANN, servers.ask)
    assert servers.asked == 2


@pytest.mark.parametrize(
    ("outcome", "asked"), [(ToolOutcome.DONE, 2), (ToolOutcome.FAILED, 3), (ToolOutcome.UNKNOWN, 3)]
)
async def test_a_call_that_does_not_succeed_makes_its_owners_offer_old(
    outcome: ToolOutcome, asked: int
) -> None:
    servers = Servers(Offer((TOOL,)))
    offers = KeptOffers(FakeClock())
    await offers.at(ANN, servers.ask)
    await offers.at(BEN, servers.ask)
    assert await offers.after(ANN, done(outcome)) == Outcome(outcome, "{}")
    await offers.at(ANN, servers.ask)
    await offers.at(BEN, servers.ask)
    assert servers.asked == asked


async def test_an_executor_that_is_gone_is_asked_before_it_is_offered_again() -> None:
    async def lost() -> Outcome:
        raise ExecutorUnreachable(Executor.TOOLRUNNER)

    servers = Servers(Offer((TOOL,)))
    offers = KeptOffers(FakeClock())
    await offers.at(ANN, servers.ask)
    with pytest.raises(ExecutorUnreachable):
        await offers.after(ANN, lost())
    await offers.at(ANN, servers.ask)
    assert servers.asked == 2
