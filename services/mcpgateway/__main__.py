"""Runs one mcpgateway process: `python -m mcpgateway`."""

from mcpgateway.app import run
from mcpgateway.settings import Settings
from parley.process import run_service

if __name__ == "__main__":
    run_service("mcpgateway", Settings, run)
