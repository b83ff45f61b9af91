"""The egress proxy of workspaces: it forwards requests that a policy allows, and adds secrets."""

from toolrunner.egress.access_log import (
    AccessLog,
    LoggedAccess,
    ProxyAccessRecord,
)
from toolrunner.egress.dialer import Dialer, Network, SystemNetwork
from toolrunner.egress.domain.errors import (
    EgressError,
    PolicyInvalid,
    Reason,
    Refused,
    SecretUnavailable,
)
from toolrunner.egress.domain.grants import Delivery, Grant, SecretValue, grant_for
from toolrunner.egress.domain.hosts import HostPattern, Place
from toolrunner.egress.domain.limits import Limits
from toolrunner.egress.domain.policy import Access, Policy, Way
from toolrunner.egress.domain.presets import PRESETS, Preset
from toolrunner.egress.domain.rules import Rules
from toolrunner.egress.domain.variables import git_variables, variables_of
from toolrunner.egress.listeners import Egress, Exit
from toolrunner.egress.proxy import Proxy
from toolrunner.egress.secrets import NoSecrets, SecretSource, SecretUse

__all__ = [
    "PRESETS",
    "Access",
    "AccessLog",
    "Delivery",
    "Dialer",
    "Egress",
    "EgressError",
    "Exit",
    "Grant",
    "HostPattern",
    "Limits",
    "LoggedAccess",
    "Network",
    "NoSecrets",
    "Place",
    "Policy",
    "PolicyInvalid",
    "Preset",
    "Proxy",
    "ProxyAccessRecord",
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
