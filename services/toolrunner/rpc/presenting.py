"""Processes as callers see them: the record, and what runs of it now."""

from collections import Counter

from parley.api.workspace.v1 import process_pb2
from toolrunner.domain import ProcessRecord, ProcessState
from toolrunner.rpc.convert import process_to_proto
from toolrunner.spawner import running_processes


def group_sizes() -> Counter[int]:
    """Return how many processes each process group has."""
    return Counter(each.group for each in running_processes())


def present(record: ProcessRecord, members: Counter[int] | None = None) -> process_pb2.Process:
    """Return a process with what runs of it now."""
    has_open_pipes = record.exit is not None and record.exit.has_open_pipes
    if record.state is not ProcessState.RUNNING and not has_open_pipes:
        return process_to_proto(record, running_members=0)
    sizes = group_sizes() if members is None else members
    return process_to_proto(record, running_members=sizes[record.pid])
