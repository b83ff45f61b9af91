"""Landlock: rules for files and TCP ports that a process applies to itself irrevocably."""

import os
import stat
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from toolrunner.sandbox.syscalls import call

VERSION_FLAG = 1
RULE_PATH_BENEATH = 1
RULE_NET_PORT = 2

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
#: Removing and creating entries of any kind.
CHANGE_DIR = sum(1 << bit for bit in range(4, 13))
BIND_TCP, CONNECT_TCP = 1 << 0, 1 << 1
SCOPE_ABSTRACT_SOCKETS, SCOPE_SIGNALS = 1 << 0, 1 << 1

ABI_REFER, ABI_TRUNCATE, ABI_NETWORK, ABI_IOCTL, ABI_SCOPES = 2, 3, 4, 5, 6

READ = READ_FILE | READ_DIR | EXECUTE
WRITE = READ | WRITE_FILE | CHANGE_DIR | REFER | TRUNCATE
DEVICE = READ_FILE | WRITE_FILE | IOCTL_DEV
#: The access rights that apply to a file that is not a directory.
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV


@dataclass(frozen=True, slots=True)
class Rules:
    """The permissions of a process; all other accesses are refused.

    Attributes:
        readable: Paths below which to read and execute; missing ones are skipped.
        writable: Paths below which all access is allowed.
        devices: Files to read, write and control.
        confines_tcp: Whether no port may be bound, and only `ports` connected to.
        scopes: Operations that are confined to processes with the same rules.
    """

    readable: tuple[str, ...]
    writable: tuple[str, ...]
    devices: tuple[str, ...] = ()
    confines_tcp: bool = False
    ports: tuple[int, ...] = ()
    scopes: int = 0


def version() -> int:
    """Return the version of the interface, 0 without Landlock."""
    try:
        return call("landlock_create_ruleset", None, 0, VERSION_FLAG)
    except OSError:
        return 0


def handled(abi: int) -> int:
    """Return all file access rights that a version supports."""
    known = READ | WRITE_FILE | CHANGE_DIR
    if abi >= ABI_REFER:
        known |= REFER
    if abi >= ABI_TRUNCATE:
        known |= TRUNCATE
    if abi >= ABI_IOCTL:
        known |= IOCTL_DEV
    return known


def restrict(rules: Rules, abi: int) -> None:
    """Apply the rules to this process and its future children.

    Raises:
        OSError: The kernel refused; no rules are applied.
    """
    known = handled(abi)
    attributes = struct.pack("=Q", known)
    if abi >= ABI_NETWORK:
        attributes += struct.pack("=Q", BIND_TCP | CONNECT_TCP if rules.confines_tcp else 0)
    if abi >= ABI_SCOPES:
        attributes += struct.pack("=Q", rules.scopes)
    ruleset = call("landlock_create_ruleset", attributes, len(attributes), 0)
    try:
        for paths, access in (
            (rules.readable, READ),
            (rules.writable, WRITE),
            (rules.devices, DEVICE),
        ):
            _allow(ruleset, paths, access & known)
        for port in rules.ports if abi >= ABI_NETWORK else ():
            rule = struct.pack("=QQ", CONNECT_TCP, port)
            call("landlock_add_rule", ruleset, RULE_NET_PORT, rule, 0)
        call("landlock_restrict_self", ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, paths: Iterable[str], access: int) -> None:
    for path in paths:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            is_directory = stat.S_ISDIR(os.fstat(fd).st_mode)
            given = access if is_directory else access & OF_FILES
            rule = struct.pack("=Qi", given, fd)
            call("landlock_add_rule", ruleset, RULE_PATH_BENEATH, rule, 0)
        finally:
            os.close(fd)
