"""Figures of a start: `parley up --detach` to ready, idle memory per process, time of `--help`.

Run as `python bench/start.py [--repeat N] [--cold]`; prints one JSON object. With `--cold` the last
commit is cloned into an empty directory and `make run`'s script is timed there: packages come from
wherever pip is set up to get them, so that figure is also one of the network.
"""

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))

from bench.machine import print_figures

PARLEY = (sys.executable, "-m", "parley.cli")
SETTLING_S = 2.0


def parley(home: Path, *arguments: str) -> str:
    command = [*PARLEY, *arguments, "--home", str(home)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise SystemExit(f"parley {arguments[0]} failed: {ended.stderr}{ended.stdout}")
    return ended.stdout


def seconds(home: Path, *arguments: str) -> float:
    began = time.monotonic()
    parley(home, *arguments)
    return round(time.monotonic() - began, 3)


def idle_memory(home: Path) -> dict[str, float]:
    """Return the resident MiB of each process, by service and number."""
    time.sleep(SETTLING_S)
    found: dict[str, float] = {}
    for process in json.loads(parley(home, "status", "--json"))["processes"]:
        numbers = [name for name in found if name.rpartition("-")[0] == process["service"]]
        name = f"{process['service']}-{len(numbers)}"
        found[name] = round(process["rss_bytes"] / 2**20, 1)
    return found


def help_ms(repeat: int) -> dict[str, float]:
    """Return the wall time of `parley --help`, and the time its imports take."""
    walls, imports = [], []
    for _ in range(repeat):
        began = time.monotonic()
        subprocess.run([*PARLEY, "--help"], stdout=subprocess.DEVNULL, check=True)
        walls.append((time.monotonic() - began) * 1000)
        told = subprocess.run(
            [sys.executable, "-X", "importtime", "-c", "import parley.cli.main"],
            capture_output=True,
            text=True,
            check=True,
        )
        imports.append(int(told.stderr.splitlines()[-1].split("|")[1]) / 1000)
    return {"wall_ms": round(min(walls), 1), "import_ms": round(min(imports), 1)}


def start_figures(repeat: int) -> dict[str, Any]:
    """Return the times of a first and of later starts in one home, and memory when idle."""
    with tempfile.TemporaryDirectory(prefix="parley-bench-") as directory:
        home = Path(directory)
        with socket.create_server(("127.0.0.1", 0)) as free:
            http = f"127.0.0.1:{free.getsockname()[1]}"
        up = ("up", "--detach", "--http", http)
        first_s = seconds(home, *up)
        memory = idle_memory(home)
        down_s, warm_s = [], []
        for _ in range(repeat):
            down_s.append(seconds(home, "down"))
            warm_s.append(seconds(home, *up))
        down_s.append(seconds(home, "down"))
    return {
        "first_up_s": first_s,
        "warm_up_s": {"best": min(warm_s), "all": warm_s},
        "down_s": {"worst": max(down_s), "all": down_s},
        "idle_rss_mib": memory | {"total": round(sum(memory.values()), 1)},
    }


def timed_s(*command: str | Path) -> float:
    """Run a command, and return how long it took in seconds."""
    began = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return round(time.monotonic() - began, 2)


def mib_below(*directories: Path) -> float:
    """Return the MiB of all files in directories."""
    files = (each for directory in directories for each in directory.rglob("*"))
    return round(sum(each.lstat().st_size for each in files if each.is_file()) / 2**20, 1)


def page_figures(clone: Path) -> dict[str, float]:
    """Return what the page adds to the set-up of a clone: cold, with its packages, and warm."""
    web = clone / "services" / "gateway" / "web"
    return {
        "cold_s": timed_s(clone / "scripts/page"),
        "warm_s": timed_s(clone / "scripts/page"),
        "packages_mib": mib_below(web / "page" / "node_modules"),
        "built_mib": mib_below(web / "built"),
    }


def cold_figures() -> dict[str, Any]:
    """Return how long a clone takes from nothing to ready, and which part of it is the page's."""
    root = Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory(prefix="parley-bench-") as directory:
        clone, home = Path(directory) / "clone", Path(directory) / "home"
        subprocess.run(["git", "clone", "--quiet", str(root), str(clone)], check=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            http = f"127.0.0.1:{free.getsockname()[1]}"
        setup_s = timed_s(clone / "scripts/setup")
        page = page_figures(clone)
        up = ("--detach", "--http", http, "--home", str(home))
        run_s = timed_s(clone / "scripts/run", *up)
        down = [str(clone / ".venv/bin/parley"), "down", "--home", str(home)]
        subprocess.run(down, stdout=subprocess.DEVNULL, check=True)
    ready_s = round(setup_s + page["cold_s"] + run_s, 2)
    return {"setup_s": setup_s, "page": page, "cold_run_s": ready_s}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--cold", action="store_true", help="time a fresh clone too")
    asked = parser.parse_args()
    figures: dict[str, Any] = {"help": help_ms(asked.repeat), **start_figures(asked.repeat)}
    if asked.cold:
        figures["cold"] = cold_figures()
    print_figures(figures)


if __name__ == "__main__":
    main()
