"""Measures what the admission of a request costs, with rates and without.

Run it with `python bench/admission.py`. It prints one JSON object, in microseconds of processor
time for each request: of the concurrency limits alone, and with the rates of address, user and API
key, for few subjects and for more than are kept.
"""

import argparse
import asyncio
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))

from bench.machine import print_figures

from gateway.http.limits.admission import Admission, AdmissionLimits, Duration, Requester
from gateway.http.limits.rates import RateQuotas
from parley.clock import SystemClock

MANY = 200_000
QUOTAS = RateQuotas(address=10**9, user=10**9, key=10**9)


async def cost_us(quotas: RateQuotas, subjects: int, requests: int) -> float:
    """Return the processor time of one admission."""
    admission = Admission(AdmissionLimits(quotas=quotas), SystemClock())
    names = [f"subject-{number}" for number in range(subjects)]
    began_ns = time.process_time_ns()
    for number in range(requests):
        name = names[number % subjects]
        headers: dict[str, str] = {}
        for policy in ("address", "user", "key"):
            admission.count(policy, name, headers)
        async with admission.admitted(Requester(name, name, None), Duration.SHORT):
            pass
    return round((time.process_time_ns() - began_ns) / requests / 1000, 2)


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=300_000)
    requests = parser.parse_args().requests
    print_figures(
        {
            "without_rates_us": await cost_us(RateQuotas(), 100, requests),
            "with_rates_us": await cost_us(QUOTAS, 100, requests),
            "with_rates_of_many_subjects_us": await cost_us(QUOTAS, MANY, requests),
        }
    )


if __name__ == "__main__":
    asyncio.run(main())
