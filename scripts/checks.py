"""Runs all checks, as many at a time as there are processors; all of them, even after a failure.

A check that reads nothing but some files passes again while they are the same. So a check that
names its inputs leaves a stamp in .venv when it passes, which scripts/setup makes anew when the
lock or pyproject.toml changes, and is not run again until one of its inputs changes.

Usage:
    checks.py [--fresh] [--thorough]

With --fresh everything runs, whether it passed before or not; with --thorough also what takes so
long that it runs before the tests alone.
"""

import asyncio
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).resolve().parent.parent
BIN = ".venv/bin"
PYTHON = f"{BIN}/python"
STAMPS = ROOT / ".venv" / "checks"
SOURCES = ("bench", "libs", "scripts", "services", "tests")
DOCUMENT = "services/gateway/api/openapi.json"
PAGE = "services/gateway/web/page"


@dataclass(frozen=True)
class Check:
    """A command that fails if something is wrong.

    Attributes:
        name: What is printed.
        command: The program and its arguments.
        inputs: Files and directories that decide whether it passes; empty if other things do too.
        suffixes: Which files of these directories do; empty for all.
        commits: Names of git that decide as well, such as the trees that the files are compared to.
        limit_s: How long it may take before it is ended and fails; a slow machine needs a tenth.
        is_thorough: It takes long and rarely finds what the other checks do not.
    """

    name: str
    command: Sequence[str]
    inputs: Sequence[str] = ()
    suffixes: Sequence[str] = ()
    commits: Sequence[str] = ()
    limit_s: float = 1800.0
    is_thorough: bool = False


@dataclass(frozen=True)
class Outcome:
    """How a check ended.

    Attributes:
        status: Its exit status.
        output: What it printed.
        took_s: How long it took; None if it was not run because its inputs are the same.
    """

    status: int
    output: str
    took_s: float | None


#: Those that take longest come first, so that none of them is left alone at the end.
CHECKS = (
    Check("types-again", (f"{BIN}/mypy", *SOURCES), SOURCES, (".py", ".pyi"), is_thorough=True),
    Check("types", (f"{BIN}/pyrefly", "check"), SOURCES, (".py", ".pyi")),
    Check("contracts", (f"{BIN}/pytest", "--quiet", "tests/contract")),
    Check("page-types", ("scripts/page_check",), (PAGE, DOCUMENT, "scripts")),
    Check(
        "constraints-drift",
        (PYTHON, "scripts/constraints.py", "--check"),
        ("libs", "services", "scripts"),
        (".py", ".mako", ".sql"),
    ),
    Check(
        "openapi",
        (PYTHON, "scripts/openapi.py", "--check"),
        ("libs", "protos", "services", "scripts"),
        (".py", ".proto", ".json"),
    ),
    Check(
        "openapi-lint",
        ("scripts/openapi_lint",),
        (DOCUMENT, "tests/clients/typescript", "scripts"),
    ),
    Check(
        "protos-drift",
        ("scripts/protos", "--check"),
        ("protos", "libs/parley/api", "libs/buf", "scripts"),
    ),
    Check(
        "layers",
        (f"{BIN}/lint-imports", "--no-cache"),
        ("libs", "services"),
        (".py",),
    ),
    Check(
        "protos-breaking",
        (PYTHON, "scripts/buf_workspace.py", "breaking"),
        ("protos", "scripts"),
        commits=("main:protos", "main~1:protos", "HEAD:protos", "HEAD~1:protos"),
    ),
    Check("protos-lint", (PYTHON, "scripts/buf_workspace.py", "lint"), ("protos", "scripts")),
    Check("protos-format", (f"{BIN}/buf", "format", "--diff", "--exit-code", "protos")),
    Check("openapi-breaking", (PYTHON, "scripts/openapi_breaking.py")),
    Check("diagram", (PYTHON, "scripts/diagram.py", "--check")),
    Check("lint", (f"{BIN}/ruff", "check", "--quiet", ".")),
    Check("format", (f"{BIN}/ruff", "format", "--check", "--quiet", ".")),
)


async def main() -> int:
    """Run the checks and print how each of them ended."""
    began_s = monotonic()
    slots = asyncio.Semaphore(max(len(os.sched_getaffinity(0)), 2))
    files = tracked_files()
    failed: list[str] = []

    async def report(check: Check) -> None:
        async with slots:
            outcome = await outcome_of(check, files)
        if outcome.status != 0:
            failed.append(check.name)
            print(f"FAILED  {check.name}\n{outcome.output}", flush=True)
            return
        took = "unchanged" if outcome.took_s is None else f"{outcome.took_s:.1f} s"
        print(f"ok      {check.name} ({took})", flush=True)

    async with asyncio.TaskGroup() as group:
        for check in CHECKS:
            if "--thorough" in sys.argv[1:] or not check.is_thorough:
                group.create_task(report(check))
    print(f"all checks: {monotonic() - began_s:.1f} s")
    if failed:
        print(f"failed: {' '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


async def outcome_of(check: Check, files: Sequence[str]) -> Outcome:
    """Run a check, unless it passed with the same inputs."""
    stamp = STAMPS / check.name
    # Without git there is no list of files, and nothing is known to be the same.
    inputs = digest(check, files) if check.inputs and files else None
    if inputs is not None and "--fresh" not in sys.argv[1:] and is_same(stamp, inputs):
        return Outcome(0, "", None)
    began_s = monotonic()
    status, output = await run(check.command, check.limit_s)
    # Inputs that were changed while it ran may not be those that passed.
    if inputs is not None and status == 0 and digest(check, files) == inputs:
        STAMPS.mkdir(exist_ok=True)
        stamp.write_text(inputs)
    return Outcome(status, output, monotonic() - began_s)


async def run(command: Sequence[str], limit_s: float) -> tuple[int, str]:
    """Run a program to its end or to the limit, and end it with this one."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(limit_s):
            output, _ = await process.communicate()
    except TimeoutError:
        os.killpg(process.pid, signal.SIGKILL)
        return await process.wait(), f"It was ended because it took more than {limit_s:g} s."
    except asyncio.CancelledError:
        os.killpg(process.pid, signal.SIGTERM)
        raise
    return process.returncode or 0, output.decode(errors="replace")


def is_same(stamp: Path, inputs: str) -> bool:
    """Return whether a check passed with these inputs."""
    return stamp.exists() and stamp.read_text() == inputs


def digest(check: Check, files: Sequence[str]) -> str:
    """Return what changes with the inputs of a check."""
    made = hashlib.sha256(repr(check).encode())
    for commit in check.commits:
        made.update(f"{commit} {git('rev-parse', '--quiet', '--verify', commit)}\n".encode())
    for name in files:
        is_input = any(name == each or name.startswith(f"{each}/") for each in check.inputs)
        if is_input and (not check.suffixes or name.endswith(tuple(check.suffixes))):
            content = hashlib.sha256((ROOT / name).read_bytes()).hexdigest()
            made.update(f"{name} {content}\n".encode())
    return made.hexdigest()


def tracked_files() -> list[str]:
    """Return our files, whether committed yet or not."""
    listing = git("ls-files", "--cached", "--others", "--exclude-standard")
    return sorted(name for name in {*listing.splitlines()} if (ROOT / name).is_file())


def git(*arguments: str) -> str:
    """Return what git prints; nothing where it fails."""
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout


async def until_stopped() -> int:
    """Run the checks until they end, or until a signal ends them with all that they started."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    return await main()


if __name__ == "__main__":
    try:
        raise SystemExit(asyncio.run(until_stopped()))
    except asyncio.CancelledError:
        raise SystemExit(130) from None
