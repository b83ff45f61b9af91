"""The egress routes of hosted workspaces, by their current policies."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from toolrunner import egress
from toolrunner.egress.domain.grants import REPOSITORY_PATH
from toolrunner.egress.domain.reached import ReachedHost
from toolrunner.egress.domain.variables import git_variables
from toolrunner.egress.listeners import EgressRoute
from toolrunner.egress.reached_hosts import ReachedHosts
from toolrunner.primitives.domain import ProcessId, WorkspaceId
from toolrunner.workspaces.domain import spec as specs
from toolrunner.workspaces.domain.placement import HostState, Placement

logger = logging.getLogger(__name__)

DELIVERIES: Final = {
    "SECRET_DELIVERY_GIT": egress.Delivery.GIT,
    "SECRET_DELIVERY_ENVIRONMENT": egress.Delivery.ENVIRONMENT,
}
OVER: Final = (HostState.STOPPING, HostState.STOPPED, HostState.REMOVING, HostState.REMOVED)


@dataclass
class WorkspaceEgress:
    """Opens and closes egress routes.

    Attributes:
        listeners: The proxy's listeners for workspaces.
        fetch_listeners: Those for the node's own git, when it fetches for a workspace.
        secrets: Returns values of granted secrets.
        private: Targets in the node's own network that its operator allowed.
        presets: Host lists that its operator defined.
        placements: The placements; set by the host service.
        reached: The hosts that processes of workspaces reached; None if they are not recorded.
    """

    listeners: egress.ProxyListeners
    fetch_listeners: egress.ProxyListeners
    secrets: egress.SecretSource = field(default_factory=egress.NoSecrets)
    private: frozenset[egress.HostPort] = frozenset()
    presets: tuple[egress.Preset, ...] = ()
    placements: Mapping[WorkspaceId, Placement] = field(default_factory=dict)
    reached: ReachedHosts | None = None

    async def egress_route(self, workspace_id: WorkspaceId) -> EgressRoute | None:
        """Return the egress route of a workspace by its current policy; None if it has none."""
        rules = self.rules(workspace_id)
        if rules is None or rules.policy.access is egress.Access.NONE:
            self.listeners.close(workspace_id)
            return None
        found = self.listeners.endpoint_of(workspace_id)
        if found is None or self.listeners.rules_of(workspace_id) != rules:
            found = await self.listeners.open(rules)
        return EgressRoute(found, rules.grants)

    async def refresh(self, workspace_id: WorkspaceId) -> None:
        """Apply the current policy of a workspace, if it has an egress route."""
        if self.listeners.rules_of(workspace_id) is not None:
            await self.egress_route(workspace_id)

    def close(self, workspace_id: WorkspaceId) -> None:
        """Close the egress routes of a workspace."""
        self.listeners.close(workspace_id)
        self.fetch_listeners.close(workspace_id)
        if self.reached is not None:
            self.reached.forget(workspace_id)

    async def join(self, workspace_id: WorkspaceId, tree_id: str) -> None:
        """Record from when on chats of a tree use a workspace, whatever its network is by now."""
        if self.reached is not None and workspace_id in self.placements:
            await self.reached.join(workspace_id, tree_id)

    async def reached_since(
        self, workspace_id: WorkspaceId, tree_id: str
    ) -> tuple[ReachedHost, ...]:
        """Return the hosts that a workspace reached through the proxy since a tree uses it."""
        if self.reached is None or workspace_id not in self.placements:
            return ()
        return await self.reached.since(workspace_id, tree_id)

    async def merge_reached(self, fork_id: WorkspaceId, parent_id: WorkspaceId) -> None:
        """Record in a workspace what its fork reached, before it gets the files of the fork.

        Raises:
            OSError: It could not be recorded.
        """
        if self.reached is not None:
            await self.reached.merge(fork_id, parent_id)

    async def environment(self, workspace_id: WorkspaceId, url: str) -> Mapping[str, str]:
        """Return variables that point the node's own git to a repository, with the grants for it.

        None contains a secret. The repository is part of the workspace spec, so it may be fetched
        whatever the policy of the workspace; and nothing else may.
        """
        rules, host_port = self.rules(workspace_id), repository_place(url)
        granted = None if rules is None else fetch_grant(rules.grants, host_port)
        if host_port is None or granted is None:
            return {}
        policy = egress.Policy(
            egress.Access.PROXY,
            (egress.HostPattern(host_port.host, port=host_port.port),),
            private=self.private,
        )
        opened = await self.fetch_listeners.open(egress.Rules(workspace_id, policy, (granted,)))
        # A wildcard cannot be a URL rule of git, and this one host is known.
        exact = replace(granted, hosts=policy.allowed)
        return git_variables((exact,), f"http://127.0.0.1:{opened.port}/~{opened.token}")

    async def secret_variables(
        self, workspace_id: WorkspaceId, process_id: ProcessId
    ) -> Mapping[str, str]:
        """Return the secrets that a process gets as variables; each is audited as a use.

        Raises:
            SecretUnavailable: One of them is not available.
        """
        return {
            grant.variable: await self.secret_text(workspace_id, process_id, grant)
            for grant in self.variable_grants(workspace_id)
        }

    def variable_grants(self, workspace_id: WorkspaceId) -> tuple[egress.Grant, ...]:
        """Return the grants of secrets that processes get as variables."""
        rules = self.rules(workspace_id)
        return tuple(
            grant
            for grant in (() if rules is None else rules.grants)
            if grant.delivery is egress.Delivery.ENVIRONMENT and grant.variable
        )

    async def secret_text(
        self, workspace_id: WorkspaceId, process_id: ProcessId, grant: egress.Grant
    ) -> str:
        """Return a secret that a process has as a variable; it is audited as a use.

        Raises:
            SecretUnavailable: It is not available.
        """
        use = egress.SecretUse(workspace_id, grant.name, "", f"process {process_id}")
        return text_of(grant, await self.secrets.use(use))

    def rules(self, workspace_id: WorkspaceId) -> egress.Rules | None:
        """Return the egress rules of a workspace, None if it is not here."""
        placement = self.placements.get(workspace_id)
        if placement is None or placement.state in OVER:
            return None
        try:
            return rules_of(placement, self.private, self.presets)
        except egress.PolicyInvalid as error:
            logger.warning("workspace %s has no way out: %s", workspace_id, error)
            return egress.Rules(workspace_id)


def repository_place(url: str) -> egress.HostPort | None:
    """Return the host of a repository with an HTTPS or SSH URL; None for other URLs."""
    scheme, mark, rest = url.partition("https://")
    short, colon, _ = url.removeprefix("git@").partition(":")
    try:
        if mark and not scheme:
            return egress.HostPort.parse(rest.partition("/")[0], default_port=443)
        if url.startswith("git@") and colon:
            return egress.HostPort.parse(short, default_port=443)
    except ValueError:
        pass
    return None


def fetch_grant(
    grants: Iterable[egress.Grant], host_port: egress.HostPort | None
) -> egress.Grant | None:
    """Return the secret that git gets for a repository there, if one is granted."""
    return None if host_port is None else egress.grant_for(grants, host_port, REPOSITORY_PATH)


def text_of(grant: egress.Grant, secret: egress.SecretValue) -> str:
    """Return a secret as the value of a variable.

    Raises:
        SecretUnavailable: It contains a NUL, or is not UTF-8.
    """
    try:
        text = secret.value.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise egress.SecretUnavailable(grant.name, "no variable can hold its value", is_final=True)
    return text


def rules_of(
    placement: Placement,
    private: Iterable[egress.HostPort],
    presets: Iterable[egress.Preset] = (),
) -> egress.Rules:
    """Return the rules of a placement.

    Raises:
        PolicyInvalid: A preset, host or header cannot be parsed.
    """
    policy = placement.spec.policy
    access = {
        specs.NetworkAccess.PROXY: egress.Access.PROXY,
        specs.NetworkAccess.OPEN: egress.Access.OPEN,
    }.get(policy.network.access, egress.Access.NONE)
    return egress.Rules(
        placement.workspace_id,
        egress.Policy.read(
            access,
            presets=policy.network.presets,
            own_presets=presets,
            allowed_hosts=policy.network.allowed_hosts,
            denied_hosts=policy.network.denied_hosts,
            private=private,
        ),
        tuple(
            egress.Grant(
                each.name,
                tuple(map(egress.HostPattern.parse, each.hosts)),
                DELIVERIES.get(each.delivery, egress.Delivery.PROXY),
                each.header or "Authorization",
                each.variable,
            )
            for each in policy.secrets
        ),
    )
