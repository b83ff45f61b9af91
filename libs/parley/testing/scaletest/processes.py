"""CPU time and memory of processes on this machine, by service."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

import psutil

from parley.testing.scaletest.costs import MachineTime, Usage


def usage_of(services: Mapping[str, Iterable[int]]) -> dict[str, Usage]:
    """Return the usage so far of the processes of each service and their descendants."""
    return {service: _usage(tuple(pids)) for service, pids in services.items()}


def machine_time() -> MachineTime:
    """Return the CPU time of this machine so far."""
    spent = psutil.cpu_times()
    busy_s = sum(spent) - spent.idle - getattr(spent, "iowait", 0.0)
    # The time of guests is included in the user time already.
    busy_s -= getattr(spent, "guest", 0.0) + getattr(spent, "guest_nice", 0.0)
    return MachineTime(psutil.cpu_count() or 1, psutil.virtual_memory().total, busy_s)


def _usage(pids: tuple[int, ...]) -> Usage:
    cpu_s, memory_bytes = 0.0, 0
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            times = process.cpu_times()
            cpu_s += times.user + times.system + times.children_user + times.children_system
            family = process.children(recursive=True)
            # Memory shared within a process tree, as in PostgreSQL, is counted once.
            memory_bytes += _shared_out(process) if family else process.memory_info().rss
            for member in family:
                with suppress(psutil.NoSuchProcess):
                    spent = member.cpu_times()
                    cpu_s += spent.user + spent.system
                    memory_bytes += _shared_out(member)
    return Usage(len(pids), cpu_s, memory_bytes)


def _shared_out(process: psutil.Process) -> int:
    """Return the memory of a process, with its proportional share of shared memory."""
    with suppress(psutil.AccessDenied):
        return int(process.memory_full_info().pss)
    return int(process.memory_info().rss)
