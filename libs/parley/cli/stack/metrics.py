"""The metrics addresses of the processes of a stack: each process has its own."""

from collections.abc import Callable, Mapping

from parley.cli.errors import ConfigurationProblem
from parley.cli.stack.ports import HostPort, any_free_port, free_ports_after, refusal
from parley.cli.stack.spec import SERVICES_WITH_METRICS, Sizes, prefix_of

#: One address for all services; the processes use consecutive ports from there.
VARIABLE = "PARLEY_METRICS_LISTEN"

Refusal = Callable[[HostPort], str | None]


def metrics_variable(service: str) -> str:
    """Return the variable with the address of the first process of `service`."""
    return f"{prefix_of(service)}_METRICS_LISTEN"


def choose_metrics(
    environment: Mapping[str, str],
    sizes: Sizes,
    taken: frozenset[HostPort],
    refusal_of: Refusal = refusal,
) -> dict[str, tuple[HostPort, ...]]:
    """Return the metrics addresses of the processes of each service that has metrics enabled.

    A service begins at its own variable, or where the service before it ended. Further processes
    get the next free ports; port 0 means any free one.

    Raises:
        ConfigurationProblem: a requested address cannot be bound.
    """
    used = set(taken)
    chosen: dict[str, tuple[HostPort, ...]] = {}
    shared: HostPort | None = None
    for service in SERVICES_WITH_METRICS:
        own = environment.get(metrics_variable(service), "").strip()
        common = environment.get(VARIABLE, "").strip()
        if not own and not common:
            continue
        name = metrics_variable(service) if own else VARIABLE
        first = HostPort.parse(own or common, name, port_min=0)
        if not own and shared is not None and first.port:
            first = next(iter(free_ports_after(shared, 1, used)))
        chosen[service] = _addresses(first, name, sizes.of(service), used, refusal_of)
        if not own:
            shared = chosen[service][-1]
    return chosen


def _addresses(
    first: HostPort, name: str, count: int, used: set[HostPort], refusal_of: Refusal
) -> tuple[HostPort, ...]:
    found: list[HostPort] = []
    if first.port == 0:
        while len(found) < count:
            free = any_free_port(first.host)
            if free not in used:
                used.add(free)
                found.append(free)
        return tuple(found)
    reason = "it is used twice" if first in used else refusal_of(first)
    if reason is not None:
        raise ConfigurationProblem(
            f"{name} {first} cannot be listened on ({reason}): set it to another HOST:PORT"
        )
    addresses = (first, *free_ports_after(first, count - 1, used))
    used.update(addresses)
    return addresses
