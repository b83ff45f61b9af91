"""Many seeds, on every processor there is."""

import logging
import multiprocessing
import os
import traceback
from concurrent.futures import ProcessPoolExecutor

from support.simulation.run import simulate

BATCH = 25
FAILURES_MAX = 5


def failures_of(seeds: range) -> list[str]:
    """Simulate all seeds; return what is to be said of the first that failed."""
    batches = [seeds[first : first + BATCH] for first in range(0, len(seeds), BATCH)]
    if len(batches) == 1:
        return _failures_of_batch(seeds)
    failures: list[str] = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as processes:
        for found in processes.map(_failures_of_batch, batches):
            failures += found
            if len(failures) >= FAILURES_MAX:
                processes.shutdown(cancel_futures=True)
                break
    return failures


def _failures_of_batch(seeds: range) -> list[str]:
    logging.disable(logging.CRITICAL)  # Faults are logged as they should be, and nobody reads it.
    failures = []
    for seed in seeds:
        try:
            simulate(seed)
        except Exception as error:
            failures.append(f"seed {seed}: {''.join(traceback.format_exception(error))}")
    return failures
