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
from toolrunner.egress.domain.grants import (
    Delivery,
    Grant,
    NoSecrets,
    SecretSource,
    SecretUse,
    SecretValue,
    grant_for,
)
from toolrunner.egress.domain.hosts import HostPattern, HostPort
from toolrunner.egress.domain.policy import (
    PRESETS,
    Access,
    Limits,
    Policy,
    Preset,
    Rules,
    Transport,
)
from toolrunner.egress.domain.variables import git_variables, variables_of
from toolrunner.egress.listeners import ProxyEndpoint, ProxyListeners
from toolrunner.egress.proxy import Proxy

__all__ = [
    "PRESETS",
    "Access",
    "AccessLog",
    "Delivery",
    "Dialer",
    "EgressError",
    "Grant",
    "HostPattern",
    "HostPort",
    "Limits",
    "LoggedAccess",
    "Network",
    "NoSecrets",
    "Policy",
    "PolicyInvalid",
    "Preset",
    "Proxy",
    "ProxyAccessRecord",
    "ProxyEndpoint",
    "ProxyListeners",
    "Reason",
    "Refused",
    "Rules",
    "SecretSource",
    "SecretUnavailable",
    "SecretUse",
    "SecretValue",
    "SystemNetwork",
    "Transport",
    "git_variables",
    "grant_for",
    "variables_of",
]
