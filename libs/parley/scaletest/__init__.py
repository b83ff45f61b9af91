"""A crowd of clients that talk to any Parley over HTTP and check every event they are sent.

Each chat has one stream for the whole conversation and sends one message after the other's answer.
Client processes (`python -m parley.scaletest`) hold about a thousand chats each; the process that
starts them hands out the plan, says when to begin and gathers what became of every chat.
"""

from parley.scaletest.checker import Checker, Counts
from parley.scaletest.clients import ClientDied, Clients, shares_of
from parley.scaletest.connections import Dialer, EventReader, Requests
from parley.scaletest.frames import Frame
from parley.scaletest.measures import DatabaseActivity, Usage, costs, database_cost, machine_cost
from parley.scaletest.outcome import ChatOutcome, Stage, TurnTimes
from parley.scaletest.plan import Plan, Target
from parley.scaletest.processes import machine_time, usage_of
from parley.scaletest.report import Costs, Limits, Load, Report, report_on, wall_of
from parley.scaletest.statement_logging import LoggingRefused
from parley.scaletest.statistics import DatabaseWatch
from parley.scaletest.table import lines_of

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
