"""Wiring of the slice `titles`."""

from dataclasses import dataclass

from chatd.notifications import ChatNotifier
from chatd.resources import Resources
from chatd.spend.wiring import SpendComponents
from chatd.titles.engine.debounce import Debouncer
from chatd.titles.engine.jobs import JobQueue
from chatd.titles.engine.titles import Labelled, TitleWriter
from chatd.titles.store.title_store import PostgresTitles
from chatd.turns.engine.side_calls import SideCalls


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
    spend: SpendComponents,
    *,
    side_calls: SideCalls,
    notifier: ChatNotifier,
    labelled: Labelled,
) -> TitleComponents:
    """Return the components."""
    jobs = JobQueue()
    debouncer = Debouncer(jobs.add, resources.process.clock)
    title_writer = TitleWriter(
        side_calls,
        PostgresTitles(resources.pool),
        jobs,
        debounce=debouncer.add,
        bill=spend.bills.add,
        changed=notifier.metadata_changed,
        labelled=labelled,
    )
    return TitleComponents(title_writer, jobs, debouncer)
