"""The node's own git: without the node's settings, confined where possible, output redacted."""

import os
import pwd
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from typing import Final

from parley.public_addresses import is_public
from toolrunner.filesystem.beneath import Root
from toolrunner.filesystem.tree import hand_over
from toolrunner.primitives.domain import Limits, WorkspaceId
from toolrunner.processes.node_sandbox import Sandbox
from toolrunner.sandbox import (
    Confinement,
    Layer,
    Network,
    NotEnforceable,
    Profile,
    SandboxPaths,
    plan,
)
from toolrunner.spawner.client.node_programs import NodePrograms, OnLine, ProgramFailed

QUICK_S: Final = 60.0
NOBODY: Final = "nobody"
#: Other users may traverse it.
PASSABLE: Final = 0o711

#: The known_hosts file beside each mirror; not that of the service.
KNOWN_HOSTS: Final = "parley-known-hosts"
#: No user or system settings, no agent, no key, no prompts.
SSH: Final = (
    *("ssh", "-F", "none", "-a", "-x"),
    *("-o", "BatchMode=yes", "-o", "IdentityAgent=none", "-o", "IdentitiesOnly=yes"),
    *("-o", "IdentityFile=none", "-o", "CertificateFile=none", "-o", "PKCS11Provider=none"),
    *("-o", "GlobalKnownHostsFile=none", "-o", f"UserKnownHostsFile={KNOWN_HOSTS}"),
    *("-o", "StrictHostKeyChecking=accept-new", "-o", "UpdateHostKeys=no"),
    *("-o", "GSSAPIAuthentication=no", "-o", "HostbasedAuthentication=no"),
    *("-o", "PasswordAuthentication=no", "-o", "KbdInteractiveAuthentication=no"),
    *("-o", "ProxyCommand=none", "-o", "ControlPath=none", "-o", "PermitLocalCommand=no"),
    *("-o", "ForwardAgent=no", "-o", "ClearAllForwardings=yes", "-o", "ConnectTimeout=20"),
)

#: No system or user settings of git, and no prompts.
GIT_ENVIRONMENT: Final[Mapping[str, str]] = {
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "GIT_ADVICE": "0",
    "GIT_SSH_VARIANT": "ssh",
    "GIT_SSH_COMMAND": shlex.join(SSH),
    "LC_ALL": "C.UTF-8",
}
GIT: Final = (
    "git",
    *("-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.hooksPath=/dev/null"),
    *("-c", "advice.detachedHead=false", "-c", "init.defaultBranch=main"),
)
PRIVATE: Final = "(a private address)"
#: Matches possible IPv4 and IPv6 addresses; they are parsed afterwards.
_CANDIDATE: Final = re.compile(
    r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}(?!\.?\d)|[0-9A-Fa-f]*:[0-9A-Fa-f:.]+)"
)
_RULE: Final = re.compile(r"url\.(.+)\.insteadof", re.IGNORECASE)


def redacted(line: str, names: Mapping[str, str], asked_host: str = "") -> str:
    """Return a line without addresses that are not public, except the requested host.

    Args:
        line: The printed line.
        names: Replacements for some texts, the longest first.
        asked_host: The host as the user named it.
    """
    for text in sorted(names, key=len, reverse=True):
        line = line.replace(text, names[text])
    return _CANDIDATE.sub(lambda found: _shown(found[0], asked_host), line)


def redacted_names(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the original URLs of repositories that git accesses by a rewritten URL."""
    names: dict[str, str] = {}
    for name, value in variables.items():
        rule = _RULE.fullmatch(value) if name.startswith("GIT_CONFIG_KEY_") else None
        if rule is not None:
            names[rule[1]] = variables.get(name.replace("_KEY_", "_VALUE_"), "")
    return names


def _shown(text: str, asked_host: str) -> str:
    address = text.rstrip(".:")
    try:
        ip_address(address)
    except ValueError:
        return text
    if address == asked_host or is_public(address):
        return text
    return PRIVATE + text[len(address) :]


def ssh_to(host: str, addresses: tuple[str, ...]) -> dict[str, str]:
    """Return the variables for ssh to a host: it connects to a checked address, under its name."""
    if not addresses:
        return {}
    met = ("-o", f"HostName={addresses[0]}", "-o", f"HostKeyAlias={host}")
    return {"GIT_SSH_COMMAND": shlex.join((*SSH, *met))}


@dataclass(frozen=True, slots=True)
class GitWorkdir:
    """A directory that git works in.

    Attributes:
        name: Its workspace id for the spawner; one name, one directory.
        directory: The only one that git may write.
        readable: Paths it may read besides the system's programs.
        user: The owner of the directory and the user of git, where there are users: None for the
            user of the node's git, -1 for the service's own.
    """

    name: str
    directory: Path
    readable: tuple[str, ...] = ()
    user: int | None = None


@dataclass(frozen=True, slots=True)
class NodeGit:
    """Runs git in its working directories."""

    programs: NodePrograms
    sandbox: Sandbox
    limits: Limits

    def own(self, git_workdir: GitWorkdir) -> None:
        """Create the working directory, and change its owner to the user of git."""
        git_workdir.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        uid = self._uid(git_workdir)
        if uid >= 0:
            for above in (git_workdir.directory.parent.parent, git_workdir.directory.parent):
                if above.stat().st_uid == os.geteuid():
                    above.chmod(PASSABLE)
        owner = uid if uid >= 0 else os.geteuid()
        if git_workdir.directory.stat().st_uid == owner:
            return
        root = Root.open_directory(str(git_workdir.directory))
        try:
            hand_over(root, owner)
        finally:
            root.close()

    async def run(
        self,
        git_workdir: GitWorkdir,
        *words: str,
        network: Network = Network.NONE,
        options: tuple[str, ...] = (),
        environment: Mapping[str, str] = MappingProxyType({}),
        limit_s: float = QUICK_S,
        on_line: OnLine = lambda line: None,
        asked_host: str = "",
    ) -> tuple[str, ...]:
        """Run git in a working directory; return the last lines that it printed, unmodified.

        Lines for `on_line` and in a failure are for users: without private addresses except
        `asked_host`, and without directories of the node.

        Raises:
            ProgramFailed: It exited with an error, or not in time.
        """
        names = {**redacted_names(environment), str(git_workdir.directory): "."}
        names |= dict.fromkeys(git_workdir.readable, "(the node's copy)")

        def shown(line: str) -> str:
            return redacted(line, names, asked_host)

        try:
            return await self.programs.run(
                (*GIT, *options, *words),
                workspace_id=WorkspaceId(git_workdir.name),
                directory=git_workdir.directory,
                environment={**GIT_ENVIRONMENT, **environment},
                limit_s=limit_s,
                on_line=lambda line: on_line(shown(line)),
                confinement=self.confinement(git_workdir, network),
                limits=self.limits,
            )
        except ProgramFailed as error:
            output = tuple(map(shown, error.output))
            raise ProgramFailed(error.program, error.cause, output) from error

    async def clear_locks(self, git_workdir: GitWorkdir) -> None:
        """Remove the locks that a killed git left behind.

        Raises:
            ProgramFailed: They cannot be removed.
        """
        await self.programs.run(
            ("find", ".", "-name", "*.lock", "-delete"),
            workspace_id=WorkspaceId(git_workdir.name),
            directory=git_workdir.directory,
            environment={},
            limit_s=QUICK_S,
            confinement=self.confinement(git_workdir, Network.NONE),
            limits=self.limits,
        )

    def confinement(self, git_workdir: GitWorkdir, network: Network) -> Confinement | None:
        """Return how git is confined; None where this node cannot confine it."""
        directory = str(git_workdir.directory)
        paths = SandboxPaths(
            directory, directory, directory, self._uid(git_workdir), git_workdir.readable
        )
        is_open = network is Network.OPEN
        try:
            return plan(
                self.sandbox.report,
                paths=paths,
                profile=Profile.FULL,
                network=Network.OPEN if is_open else None,
                processes=self.limits.pids,
            )
        except NotEnforceable:
            return None

    def _uid(self, git_workdir: GitWorkdir) -> int:
        if Layer.UID not in self.sandbox.report.layers:
            return -1
        user = git_workdir.user
        return self.sandbox.user_range.git if user is None else user


def named_user() -> int:
    """Return an unprivileged user with a name, as ssh needs; -1 if the machine has none."""
    try:
        return pwd.getpwnam(NOBODY).pw_uid
    except KeyError:
        return -1


def owner_of(path: str) -> int:
    """Return the owner of a repository of this machine; -1 for the service, or if it is missing.

    Git refuses repositories of another user.
    """
    try:
        owner = os.stat(path).st_uid
    except OSError:
        return -1
    return -1 if owner == os.geteuid() else owner
