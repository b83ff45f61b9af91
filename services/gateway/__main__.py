"""Runs the gateway: `python -m gateway`."""

from gateway.app import NAME, run
from gateway.settings import GatewaySettings
from parley.process import run_service

if __name__ == "__main__":
    run_service(NAME, GatewaySettings, run)
