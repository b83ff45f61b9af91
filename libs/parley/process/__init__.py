"""The lifecycle of a service's process: settings, start, signals and exit code."""

from parley.ids import TimeOrderedIds
from parley.process.key_rotation import KeyRotation
from parley.process.open_files import OpenFiles
from parley.process.peers import Neighbours
from parley.process.service import Process, run_service
from parley.process.service_settings import Environment, ServiceSettings
from parley.settings import ConfigurationError

__all__ = [
    "ConfigurationError",
    "Environment",
    "KeyRotation",
    "Neighbours",
    "OpenFiles",
    "Process",
    "ServiceSettings",
    "TimeOrderedIds",
    "run_service",
]
