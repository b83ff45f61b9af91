"""Processes as protos: the record, with the number of running members."""

from collections import Counter
from dataclasses import dataclass

from parley.api.workspace.v1 import process_pb2
from toolrunner.journal.records import ProcessRecord
from toolrunner.primitives.domain import ProcessState
from toolrunner.processes.rpc.convert import process_to_proto
from toolrunner.spawner import running_below


@dataclass(frozen=True, slots=True)
class Presenter:
    """Presents processes that a spawner started."""

    spawner_pid: int

    def group_sizes(self) -> Counter[int]:
        """Return how many processes each process group has."""
        return Counter(each.group for each in running_below(self.spawner_pid))

    def present(
        self, record: ProcessRecord, members: Counter[int] | None = None
    ) -> process_pb2.Process:
        """Return a process with the number of its running members."""
        has_open_pipes = record.exit is not None and record.exit.has_open_pipes
        if record.state is not ProcessState.RUNNING and not has_open_pipes:
            return process_to_proto(record, running_members=0)
        sizes = self.group_sizes() if members is None else members
        return process_to_proto(record, running_members=sizes[record.pid])
