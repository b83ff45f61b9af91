"""Confinement of the processes of workspaces: probing the host, planning, and applying layers."""

from toolrunner.sandbox.confinement import Confinement
from toolrunner.sandbox.control_groups import found_groups, own_group
from toolrunner.sandbox.errors import BelowMinimum, LayerFailed, NotEnforceable, SandboxError
from toolrunner.sandbox.helper_processes import is_readable
from toolrunner.sandbox.launch import confine, prepared_filter, tasks_now
from toolrunner.sandbox.mounts import mount_scratch
from toolrunner.sandbox.namespaces import NamespaceSet, NamespaceSets, make_namespaces
from toolrunner.sandbox.plan import NICE, PROXY_PORT, Egress, SandboxPaths, judge, plan
from toolrunner.sandbox.seccomp import RLIMIT_LOCKS
from toolrunner.sandbox.socket_diag import SocketUse, open_diag, socket_use
from toolrunner.sandbox.user_limits import bound_process, host_limits
from toolrunner.sandbox.values import (
    ORDER,
    Layer,
    Level,
    Missing,
    Network,
    Profile,
    Report,
    Trials,
    Used,
)

__all__ = [
    "NICE",
    "ORDER",
    "PROXY_PORT",
    "RLIMIT_LOCKS",
    "BelowMinimum",
    "Confinement",
    "Egress",
    "Layer",
    "LayerFailed",
    "Level",
    "Missing",
    "NamespaceSet",
    "NamespaceSets",
    "Network",
    "NotEnforceable",
    "Profile",
    "Report",
    "SandboxError",
    "SandboxPaths",
    "SocketUse",
    "Trials",
    "Used",
    "bound_process",
    "confine",
    "found_groups",
    "host_limits",
    "is_readable",
    "judge",
    "make_namespaces",
    "mount_scratch",
    "open_diag",
    "own_group",
    "plan",
    "prepared_filter",
    "socket_use",
    "tasks_now",
]
