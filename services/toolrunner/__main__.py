"""Runs one toolrunner process: `python -m toolrunner`."""

from parley.process import run_service
from toolrunner.app import run
from toolrunner.settings import Settings

if __name__ == "__main__":
    run_service("toolrunner", Settings, run)
