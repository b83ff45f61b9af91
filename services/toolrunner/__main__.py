"""Runs one toolrunner process: `python -m toolrunner`."""

import sys
from typing import Final

from parley.process import run_service
from toolrunner.app import run
from toolrunner.settings import Settings

#: The GIL switch interval. The default of 5 ms would be the whole time budget to report an exit;
#: threads scan processes and write the journal.
TURN_S: Final = 0.0005

if __name__ == "__main__":
    sys.setswitchinterval(TURN_S)
    run_service("toolrunner", Settings, run)
