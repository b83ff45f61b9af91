"""Wiring of the slice `titles`."""

from dataclasses import dataclass

from chatd.model_limits import retry_policy
from chatd.models.wiring import ModelComponents
from chatd.notifications import ChatNotifier
from chatd.resources import Resources
from chatd.spend.wiring import SpendComponents
from chatd.titles.engine.debounce import Debouncer
from chatd.titles.engine.jobs import JobQueue
from chatd.titles.engine.side_calls import SideCallPorts, SideCalls
from chatd.titles.engine.titles import TitleWriter
from chatd.titles.store.title_store import PostgresTitles
from chatd.turns.domain.ports import Setups
from chatd.turns.engine.metering import CallObserver
from chatd.turns.engine.setups import ConfiguredUtilityModels


@dataclass(frozen=True, slots=True)
class TitleComponents:
    """The components that generate titles, labels and summaries.

    Attributes:
        title_writer: Decides what to generate.
        jobs: Runs the jobs, a few at a time.
        debouncer: Delays jobs until a chat is idle.
    """

    title_writer: TitleWriter
    jobs: JobQueue
    debouncer: Debouncer


def open_titles(
    resources: Resources,
    catalogue: ModelComponents,
    spend: SpendComponents,
    *,
    setups: Setups,
    notifier: ChatNotifier,
    calls: CallObserver,
) -> TitleComponents:
    """Return the components."""
    process = resources.process
    jobs = JobQueue()
    debouncer = Debouncer(jobs.add, process.clock)
    ports = SideCallPorts(
        catalogue.model,
        setups,
        ConfiguredUtilityModels(catalogue.configuration, catalogue.book),
        spend.spending,
        spend.bills.add,
        calls,
    )
    title_writer = TitleWriter(
        SideCalls(
            ports,
            clock=process.clock,
            jitter=process.random.random,
            retries=retry_policy(resources.settings),
        ),
        PostgresTitles(resources.pool),
        jobs,
        debounce=debouncer.add,
        bill=spend.bills.add,
        changed=notifier.metadata_changed,
    )
    return TitleComponents(title_writer, jobs, debouncer)
