"""Load-test clients that call any Parley over HTTP and check every event they receive.

Each chat has one stream for the whole conversation and sends the next message after each answer.
Client processes (`python -m parley.testing.scaletest`) run about a thousand chats each. The process
that starts them sends the plan and the commands and collects the results.
"""

from parley.testing.scaletest.checker import Checker, Counts
from parley.testing.scaletest.clients import ClientDied, Clients, shares_of
from parley.testing.scaletest.connections import Dialer, EventReader, Requests
from parley.testing.scaletest.costs import (
    DatabaseActivity,
    Usage,
    costs,
    database_cost,
    machine_cost,
)
from parley.testing.scaletest.frames import Frame
from parley.testing.scaletest.outcome import ChatOutcome, Stage, TurnTimes
from parley.testing.scaletest.plan import Plan, Target
from parley.testing.scaletest.processes import machine_time, usage_of
from parley.testing.scaletest.report import Costs, Limits, Load, Report, report_on, wall_of
from parley.testing.scaletest.statement_logging import LoggingRefused
from parley.testing.scaletest.statistics import DatabaseWatch
from parley.testing.scaletest.text_report import lines_of

__all__ = [
    "ChatOutcome",
    "Checker",
    "ClientDied",
    "Clients",
    "Costs",
    "Counts",
    "DatabaseActivity",
    "DatabaseWatch",
    "Dialer",
    "EventReader",
    "Frame",
    "Limits",
    "Load",
    "LoggingRefused",
    "Plan",
    "Report",
    "Requests",
    "Stage",
    "Target",
    "TurnTimes",
    "Usage",
    "costs",
    "database_cost",
    "lines_of",
    "machine_cost",
    "machine_time",
    "report_on",
    "shares_of",
    "usage_of",
    "wall_of",
]
