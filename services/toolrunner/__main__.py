"""Runs one toolrunner process: `python -m toolrunner`."""

import sys
from typing import Final

from parley.process import run_service
from toolrunner.app import run
from toolrunner.settings import Settings

#: So long a thread may compute before the event loop has its turn. By default that is 5 ms, which
#: is all the time there is to tell of an exit; threads look at processes and write the journal.
TURN_S: Final = 0.0005

if __name__ == "__main__":
    sys.setswitchinterval(TURN_S)
    run_service("toolrunner", Settings, run)
