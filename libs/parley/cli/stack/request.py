"""The request of `parley up`, and its validation."""

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from parley.cli.errors import ConfigurationProblem
from parley.cli.home.layout import Home
from parley.cli.stack.metrics import choose_metrics
from parley.cli.stack.ports import HostPort, any_free_port, free_ports_after, refusal
from parley.cli.stack.service_settings import SHARED
from parley.cli.stack.spec import Ports, Sizes

RESTART_PAUSE = "PARLEY_RESTART_PAUSE_MAX_S"
PAUSE_S_DEFAULT = 10.0
PAUSE_S_MIN = 0.2
PAUSE_S_MAX = 600.0


def restart_pause_max_s(environment: Mapping[str, str]) -> float:
    """Return the pause in seconds that the environment sets, or the default.

    Raises:
        ConfigurationProblem: it is not a number of seconds in the allowed range.
    """
    given = environment.get(RESTART_PAUSE, "").strip()
    if not given:
        return PAUSE_S_DEFAULT
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    # A comparison with NaN is false.
    if not PAUSE_S_MIN <= seconds <= PAUSE_S_MAX:
        raise ConfigurationProblem(
            f"{RESTART_PAUSE} is {given}: write seconds from {PAUSE_S_MIN:g} to {PAUSE_S_MAX:g}"
        )
    return seconds


#: Variables that start with PARLEY_ and have a meaning.
KNOWN_VARIABLES = (
    "PARLEY_API_KEY",
    "PARLEY_DATABASE_URL",
    "PARLEY_DEBUG",
    "PARLEY_HOME",
    "PARLEY_METRICS_LISTEN",
    "PARLEY_MODEL",
    RESTART_PAUSE,
    "PARLEY_URL",
    *SHARED,
)
DATABASE_SCHEMES = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True)
class UpRequest:
    """The options of `up`."""

    home: Home
    http: str
    sizes: Sizes
    database_url: str | None = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    public_url: str | None = None


def check_request(request: UpRequest) -> None:
    """Refuse a request that cannot be checked further: its home or an address is invalid.

    Raises:
        ConfigurationProblem: with every problem of the request.
    """
    problems: list[str] = []
    for check in (request.home.check, lambda: HostPort.parse(request.http)):
        try:
            check()
        except ConfigurationProblem as error:
            problems += error.problems
    if problems:
        raise ConfigurationProblem(*problems_of_request(request), *problems)


def problems_of_request(request: UpRequest) -> tuple[str, ...]:
    """Return the problems of the settings and the database of a request."""
    problems = _unknown_variables(request.environment)
    try:
        restart_pause_max_s(request.environment)
    except ConfigurationProblem as error:
        problems += error.problems
    url = request.database_url
    if url and not url.startswith(DATABASE_SCHEMES):
        problems.append(
            "--database is no PostgreSQL URL: write postgresql://role:password@host:port/database"
        )
    if request.public_url and not _is_origin(request.public_url):
        problems.append(
            f"--public-url {request.public_url} is no origin: write https://host or "
            "https://host:port, without a path"
        )
    return tuple(problems)


def choose_ports(request: UpRequest) -> Ports:
    """Return the addresses to listen on, which are all free now.

    Raises:
        ConfigurationProblem: the requested one is not free.
    """
    first = HostPort.parse(request.http)
    reason = refusal(first)
    if reason is not None:
        raise ConfigurationProblem(
            f"{first} cannot be listened on ({reason}): choose another with --http HOST:PORT"
        )
    http = (first, *free_ports_after(first, request.sizes.gateway - 1))
    demo = any_free_port("127.0.0.1")
    metrics = choose_metrics(request.environment, request.sizes, frozenset({*http, demo}))
    return Ports(http=http, mcp_demo=demo, metrics=metrics)


def _is_origin(text: str) -> bool:
    """Return whether a text has a scheme, a host and perhaps a port, and nothing more."""
    try:
        parts = urlsplit(text)
        _ = parts.port  # Raises ValueError if it is not a number.
    except ValueError:
        return False
    is_more = parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc
    is_plain = text.isprintable() and not any(each.isspace() for each in text)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and is_plain and not is_more


def _unknown_variables(environment: Mapping[str, str]) -> list[str]:
    problems = []
    for name in sorted(environment):
        if name.startswith("PARLEY_") and name not in KNOWN_VARIABLES:
            nearest = difflib.get_close_matches(name, KNOWN_VARIABLES, n=1, cutoff=0.0)[0]
            problems.append(f"{name} is not a setting: did you mean {nearest}?")
    return problems
