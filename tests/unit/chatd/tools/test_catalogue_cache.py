"""Tools are asked for once in a while, and anew when they may be others."""

import asyncio
from dataclasses import replace

import pytest

from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.tools import Executor, ExecutorUnreachable, Outcome, ToolSpec
from chatd.primitives.domain.ids import OwnerId
from chatd.tools.catalogue_cache import (
    INCOMPLETE_TTL_S,
    TTL_S,
    CatalogueKey,
    ToolCatalogue,
    ToolCatalogueCache,
)
from parley.clock import FakeClock

ANN = CatalogueKey("one", OwnerId("ann"))
BEN = CatalogueKey("one", OwnerId("ben"))
TOOL = ToolSpec("t", "", "{}", Executor.MCPGATEWAY, "g")


class Servers:
    """What is offered, and how often it was asked for."""

    def __init__(self, catalogue: ToolCatalogue) -> None:
        self.catalogue = catalogue
        self.asked = 0

    async def ask(self) -> ToolCatalogue:
        self.asked += 1
        return self.catalogue


async def done(outcome: ToolOutcome) -> Outcome:
    return Outcome(outcome, "{}")


async def test_each_owner_is_offered_tools_once_in_a_while() -> None:
    clock, servers = FakeClock(), Servers(ToolCatalogue((TOOL,)))
    catalogues = ToolCatalogueCache(clock)
    for key in (ANN, ANN, BEN, ANN):
        assert await catalogues.at(key, servers.ask) == (TOOL,)
    assert servers.asked == 2
    clock.advance(TTL_S)
    await catalogues.at(ANN, servers.ask)
    assert servers.asked == 3


async def test_two_modes_and_selections_of_one_owner_have_their_own_catalogues() -> None:
    catalogues = ToolCatalogueCache(FakeClock())
    keys = (
        ANN,
        replace(ANN, mode=ChatMode.PLAN),
        replace(ANN, server_ids=("s",)),
        replace(ANN, mode=ChatMode.PLAN, server_ids=("s",)),
    )
    offers = {
        key: Servers(ToolCatalogue((replace(TOOL, name=f"t{place}"),)))
        for place, key in enumerate(keys)
    }
    for _ in range(2):
        async with asyncio.TaskGroup() as tasks:
            asked = [tasks.create_task(catalogues.at(key, offers[key].ask)) for key in keys]
        assert [task.result()[0].name for task in asked] == ["t0", "t1", "t2", "t3"]
    assert [each.asked for each in offers.values()] == [1, 1, 1, 1]


async def test_an_offer_that_lacks_something_is_asked_for_again_soon() -> None:
    clock, servers = FakeClock(), Servers(ToolCatalogue((), is_complete=False))
    catalogues = ToolCatalogueCache(clock)
    await catalogues.at(ANN, servers.ask)
    servers.catalogue = ToolCatalogue((TOOL,))
    clock.advance(INCOMPLETE_TTL_S)
    assert await catalogues.at(ANN, servers.ask) == (TOOL,)


async def test_news_of_servers_make_every_offer_old() -> None:
    servers = Servers(ToolCatalogue((TOOL,)))
    catalogues = ToolCatalogueCache(FakeClock())
    await catalogues.at(ANN, servers.ask)
    catalogues.forget()
    await catalogues.at(ANN, servers.ask)
    assert servers.asked == 2


async def test_news_that_come_while_an_offer_is_under_way_make_it_old() -> None:
    servers = Servers(ToolCatalogue((TOOL,)))
    catalogues = ToolCatalogueCache(FakeClock())

    async def ask() -> ToolCatalogue:
        catalogue = await servers.ask()
        catalogues.forget()
        return catalogue

    await catalogues.at(ANN, ask)
    await catalogues.at(ANN, servers.ask)
    assert servers.asked == 2


@pytest.mark.parametrize(
    ("outcome", "asked"), [(ToolOutcome.DONE, 2), (ToolOutcome.FAILED, 3), (ToolOutcome.UNKNOWN, 3)]
)
async def test_a_call_that_does_not_succeed_makes_its_owners_offer_old(
    outcome: ToolOutcome, asked: int
) -> None:
    servers = Servers(ToolCatalogue((TOOL,)))
    catalogues = ToolCatalogueCache(FakeClock())
    await catalogues.at(ANN, servers.ask)
    await catalogues.at(BEN, servers.ask)
    assert await catalogues.after(ANN, done(outcome)) == Outcome(outcome, "{}")
    await catalogues.at(ANN, servers.ask)
    await catalogues.at(BEN, servers.ask)
    assert servers.asked == asked


async def test_an_executor_that_is_gone_is_asked_before_it_is_offered_again() -> None:
    async def lost() -> Outcome:
        raise ExecutorUnreachable(Executor.TOOLRUNNER)

    servers = Servers(ToolCatalogue((TOOL,)))
    catalogues = ToolCatalogueCache(FakeClock())
    await catalogues.at(ANN, servers.ask)
    with pytest.raises(ExecutorUnreachable):
        await catalogues.after(ANN, lost())
    await catalogues.at(ANN, servers.ask)
    assert servers.asked == 2
