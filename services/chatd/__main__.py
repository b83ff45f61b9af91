"""Runs one chatd process: `python -m chatd`."""

from chatd.app import run
from chatd.settings import Settings
from parley.process import run_service

if __name__ == "__main__":
    run_service("chatd", Settings, run)
