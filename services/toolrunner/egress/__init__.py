"""The way out of workspaces: a proxy that lets through what a policy allows and adds secrets."""

from toolrunner.egress.audit import Audit, KeptAudit, LoggedAudit, Passage
from toolrunner.egress.dialing import Dialer, FakeNetwork, Network, SystemNetwork
from toolrunner.egress.errors import (
    EgressError,
    PolicyInvalid,
    Reason,
    Refused,
    SecretUnavailable,
)
from toolrunner.egress.grants import Delivery, Grant, SecretValue, grant_for
from toolrunner.egress.hosts import HostPattern, Place
from toolrunner.egress.limits import Limits
from toolrunner.egress.policy import Access, Policy, Way
from toolrunner.egress.presets import PRESETS, Preset
from toolrunner.egress.proxy import Proxy
from toolrunner.egress.room import Egress, Exit
from toolrunner.egress.rules import Rules
from toolrunner.egress.secrets import FakeSecrets, NoSecrets, SecretSource, SecretUse
from toolrunner.egress.variables import git_variables, variables_of

__all__ = [
    "PRESETS",
    "Access",
    "Audit",
    "Delivery",
    "Dialer",
    "Egress",
    "EgressError",
    "Exit",
    "FakeNetwork",
    "FakeSecrets",
    "Grant",
    "HostPattern",
    "KeptAudit",
    "Limits",
    "LoggedAudit",
    "Network",
    "NoSecrets",
    "Passage",
    "Place",
    "Policy",
    "PolicyInvalid",
    "Preset",
    "Proxy",
    "Reason",
    "Refused",
    "Rules",
    "SecretSource",
    "SecretUnavailable",
    "SecretUse",
    "SecretValue",
    "SystemNetwork",
    "Way",
    "git_variables",
    "grant_for",
    "variables_of",
]
