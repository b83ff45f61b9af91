"""Titles, labels and summaries of chats, put together from the models and the notes."""

from dataclasses import dataclass

from chatd.model_limits import retry_policy
from chatd.models.wiring import Catalogue
from chatd.notifications import Switchboard
from chatd.resources import Ground
from chatd.spend.wiring import Budget
from chatd.titles.engine.debounce import Resting
from chatd.titles.engine.jobs import SmallJobs
from chatd.titles.engine.side_calls import QuickModel, QuickPorts
from chatd.titles.engine.titles import Labeller
from chatd.titles.store.notes import PostgresNotes
from chatd.turns.domain.ports import Setups
from chatd.turns.engine.metering import CallWatch
from chatd.turns.engine.setups import ConfiguredUtilityModels


@dataclass(frozen=True, slots=True)
class Labelling:
    """What makes notes about chats behind their turns.

    Attributes:
        labeller: Says which notes are to be made.
        jobs: Makes them, a few at a time.
        resting: Waits until a chat has come to rest.
    """

    labeller: Labeller
    jobs: SmallJobs
    resting: Resting


def open_labelling(
    ground: Ground,
    catalogue: Catalogue,
    budget: Budget,
    *,
    setups: Setups,
    switchboard: Switchboard,
    calls: CallWatch,
) -> Labelling:
    """Return what makes notes."""
    process = ground.process
    jobs = SmallJobs()
    resting = Resting(jobs.add, process.clock)
    ports = QuickPorts(
        catalogue.model,
        setups,
        ConfiguredUtilityModels(catalogue.configuration, catalogue.book),
        budget.spending,
        budget.bills.add,
        calls,
    )
    labeller = Labeller(
        QuickModel(
            ports,
            clock=process.clock,
            chance=process.random.random,
            retries=retry_policy(ground.settings),
        ),
        PostgresNotes(ground.pool),
        jobs,
        rest=resting.add,
        bill=budget.bills.add,
        changed=switchboard.noted,
    )
    return Labelling(labeller, jobs, resting)
