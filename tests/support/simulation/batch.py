"""Many seeds, on every processor there is."""

import gc
import logging
import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from support.simulation.node import Parts
from support.simulation.run import SOUND, simulate

BATCH = 25
FAILURES_MAX = 5
OBJECTS_MAX = 200_000
REPLAY = "pytest tests/simulation/test_simulation.py --seed"


@dataclass(frozen=True, slots=True)
class Report:
    """What became of seeds.

    Attributes:
        seeds: How many were simulated.
        virtual_s: How long they were in their own time.
        processor_s: How long they took.
        failures: What is to be said of those that failed.
    """

    seeds: int = 0
    virtual_s: float = 0.0
    processor_s: float = 0.0
    failures: tuple[str, ...] = ()

    def __add__(self, other: "Report") -> "Report":
        return Report(
            self.seeds + other.seeds,
            self.virtual_s + other.virtual_s,
            self.processor_s + other.processor_s,
            self.failures + other.failures,
        )

    def __str__(self) -> str:
        return (
            f"{self.seeds} seeds, {self.virtual_s / 3600:.1f} hours of virtual time: "
            f"{self.processor_s:.1f} s of processor time, "
            f"{self.processor_s * 1000 / max(1, self.seeds):.1f} ms a seed"
        )


def simulate_all(seeds: range, parts: Parts = SOUND) -> Report:
    """Simulate all seeds, or until some have failed."""
    one_batch = partial(_simulate_batch, parts)
    batches = [seeds[first : first + BATCH] for first in range(0, len(seeds), BATCH)]
    report = Report()
    for each in _in_parallel(one_batch, batches) if len(batches) > 1 else map(one_batch, batches):
        report += each
        if len(report.failures) >= FAILURES_MAX:
            break
    return report


def prepare_process() -> None:
    """Make a process that does nothing but simulate faster at it."""
    logging.disable(logging.CRITICAL)  # Faults are logged as they should be, and nobody reads it.
    gc.freeze()
    gc.set_threshold(OBJECTS_MAX)


def _in_parallel(one_batch: Callable[[range], Report], batches: list[range]) -> Iterator[Report]:
    context = multiprocessing.get_context("spawn")
    processes = ProcessPoolExecutor(os.cpu_count(), mp_context=context, initializer=prepare_process)
    with processes:
        try:
            yield from processes.map(one_batch, batches)
        finally:
            processes.shutdown(cancel_futures=True)


def _simulate_batch(parts: Parts, seeds: range) -> Report:
    report = Report()
    for seed in seeds:
        report += _simulate_one(seed, parts)
    return report


def _simulate_one(seed: int, parts: Parts) -> Report:
    began_s, virtual_s = time.process_time(), 0.0
    failures: tuple[str, ...] = ()
    try:
        virtual_s = simulate(seed, parts).seconds
    except Exception as error:
        told = "".join(traceback.format_exception(error))
        failures = (f"seed {seed} failed; replay it: {REPLAY} {seed}\n{told}",)
    return Report(1, virtual_s, time.process_time() - began_s, failures)
