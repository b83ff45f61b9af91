"""Titles, labels and summaries of chats, put together from the models and the notes."""

from dataclasses import dataclass

from chatd.assembly.ground import Ground
from chatd.assembly.models import Catalogue
from chatd.assembly.patience import retry_policy
from chatd.assembly.spending import Budget
from chatd.assembly.switchboard import Switchboard
from chatd.domain.ports import Setups
from chatd.engine.labelling import Labeller
from chatd.engine.metering import CallWatch
from chatd.engine.quick import QuickModel, QuickPorts
from chatd.engine.resting import Resting
from chatd.engine.setups import ConfiguredUtilityModels
from chatd.engine.small_jobs import SmallJobs
from chatd.store.notes import PostgresNotes


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
