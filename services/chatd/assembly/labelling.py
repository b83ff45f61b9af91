"""Titles, labels and summaries of chats, put together from the models and the notes."""

from collections.abc import Callable

from chatd.assembly.models import Catalogue
from chatd.domain.chat import ChatId
from chatd.domain.ports import Setups, Spending
from chatd.engine.labelling import Labeller
from chatd.engine.late_bills import LateBills
from chatd.engine.quick import QuickModel, QuickPorts
from chatd.engine.resting import Resting
from chatd.engine.setups import ConfiguredUtilityModels
from chatd.engine.small_jobs import SmallJobs
from chatd.store.notes import PostgresNotes
from parley.postgres import Pool
from parley.process import Process


def open_labelling(
    process: Process,
    pool: Pool,
    *,
    catalogue: Catalogue,
    setups: Setups,
    spending: Spending,
    bills: LateBills,
    jobs: SmallJobs,
    resting: Resting,
    noted: Callable[[ChatId, int], None],
) -> Labeller:
    """Return what makes notes about chats behind their turns."""
    ports = QuickPorts(
        catalogue.model,
        setups,
        ConfiguredUtilityModels(catalogue.configuration, catalogue.book),
        spending,
        bills.add,
    )
    return Labeller(
        QuickModel(ports, clock=process.clock, chance=process.random.random),
        PostgresNotes(pool),
        jobs,
        rest=resting.add,
        bill=bills.add,
        changed=noted,
    )
