"""The ways out of hosted workspaces, each as its policy says it now."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from toolrunner import egress
from toolrunner.egress.domain.git_message import A_REPOSITORY
from toolrunner.egress.domain.variables import git_variables
from toolrunner.egress.routes import EgressRoute
from toolrunner.primitives.domain import ProcessId, WorkspaceId
from toolrunner.workspaces.domain import spec as recipes
from toolrunner.workspaces.domain.placement import HostState, Placement

logger = logging.getLogger(__name__)

DELIVERIES: Final = {
    "SECRET_DELIVERY_GIT": egress.Delivery.GIT,
    "SECRET_DELIVERY_ENVIRONMENT": egress.Delivery.ENVIRONMENT,
}
OVER: Final = (HostState.STOPPING, HostState.STOPPED, HostState.REMOVING, HostState.REMOVED)


@dataclass
class WorkspaceEgress:
    """Opens and closes ways out.

    Attributes:
        exits: The proxy's listeners for workspaces.
        fetches: Those for the node's own git, when it makes a workspace of a repository.
        secrets: Gives values of granted secrets.
        private: Places of the node's own network that its operator opened.
        presets: Lists of hosts that its operator named.
        placements: What is hosted; set by whoever hosts.
    """

    exits: egress.Egress
    fetches: egress.Egress
    secrets: egress.SecretSource = field(default_factory=egress.NoSecrets)
    private: frozenset[egress.Place] = frozenset()
    presets: tuple[egress.Preset, ...] = ()
    placements: Mapping[WorkspaceId, Placement] = field(default_factory=dict)

    async def egress_route(self, workspace_id: WorkspaceId) -> EgressRoute | None:
        """Return the way out of a workspace by its policy as it is now; None if it has none."""
        rules = self.rules(workspace_id)
        if rules is None or rules.policy.access is egress.Access.NONE:
            self.exits.close(workspace_id)
            return None
        found = self.exits.exit_of(workspace_id)
        if found is None or self.exits.rules_of(workspace_id) != rules:
            found = await self.exits.open(rules)
        return EgressRoute(found, rules.grants)

    async def refresh(self, workspace_id: WorkspaceId) -> None:
        """Go by what a workspace may do now, if it has a way out."""
        if self.exits.rules_of(workspace_id) is not None:
            await self.egress_route(workspace_id)

    def close(self, workspace_id: WorkspaceId) -> None:
        """Let nothing of a workspace out any more."""
        self.exits.close(workspace_id)
        self.fetches.close(workspace_id)

    async def environment(self, workspace_id: WorkspaceId, url: str) -> Mapping[str, str]:
        """Return variables that lead the node's own git to a repository with the grants for it.

        None is a secret. The repository is part of the recipe, so it may be fetched whatever the
        workspace itself may reach; and nothing else may.
        """
        rules, place = self.rules(workspace_id), repository_place(url)
        granted = None if rules is None else fetch_grant(rules.grants, place)
        if place is None or granted is None:
            return {}
        policy = egress.Policy(
            egress.Access.PROXY,
            (egress.HostPattern(place.host, port=place.port),),
            private=self.private,
        )
        opened = await self.fetches.open(egress.Rules(workspace_id, policy, (granted,)))
        # A wildcard cannot be written as a rule of git, and this one place is known.
        exact = replace(granted, hosts=policy.allowed)
        return git_variables((exact,), f"http://127.0.0.1:{opened.port}/~{opened.token}")

    async def secret_variables(
        self, workspace_id: WorkspaceId, process_id: ProcessId
    ) -> Mapping[str, str]:
        """Return the secrets that a process gets as variables; each is on record as a use.

        Raises:
            SecretUnavailable: One of them is not given.
        """
        rules = self.rules(workspace_id)
        found = {}
        for grant in () if rules is None else rules.grants:
            if grant.delivery is egress.Delivery.ENVIRONMENT and grant.variable:
                use = egress.SecretUse(workspace_id, grant.name, "", f"process {process_id}")
                found[grant.variable] = text_of(grant, await self.secrets.use(use))
        return found

    def rules(self, workspace_id: WorkspaceId) -> egress.Rules | None:
        """Return what a workspace may do outside, None if it is not here."""
        placement = self.placements.get(workspace_id)
        if placement is None or placement.state in OVER:
            return None
        try:
            return rules_of(placement, self.private, self.presets)
        except egress.PolicyInvalid as error:
            logger.warning("workspace %s has no way out: %s", workspace_id, error)
            return egress.Rules(workspace_id)


def repository_place(url: str) -> egress.Place | None:
    """Return where a repository is that can be asked for over TLS; None if it is none such."""
    scheme, mark, rest = url.partition("https://")
    short, colon, _ = url.removeprefix("git@").partition(":")
    try:
        if mark and not scheme:
            return egress.Place.parse(rest.partition("/")[0], default_port=443)
        if url.startswith("git@") and colon:
            return egress.Place.parse(short, default_port=443)
    except ValueError:
        pass
    return None


def fetch_grant(grants: Iterable[egress.Grant], place: egress.Place | None) -> egress.Grant | None:
    """Return the secret that git gets for a repository there, if one is granted."""
    return None if place is None else egress.grant_for(grants, place, A_REPOSITORY)


def text_of(grant: egress.Grant, secret: egress.SecretValue) -> str:
    """Return a secret as a variable holds it.

    Raises:
        SecretUnavailable: No variable can.
    """
    try:
        text = secret.value.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise egress.SecretUnavailable(grant.name, "no variable can hold its value")
    return text


def rules_of(
    placement: Placement,
    private: Iterable[egress.Place],
    presets: Iterable[egress.Preset] = (),
) -> egress.Rules:
    """Return the rules of a placement.

    Raises:
        PolicyInvalid: A preset, host or header cannot be read.
    """
    policy = placement.recipe.policy
    access = {
        recipes.NetworkAccess.PROXY: egress.Access.PROXY,
        recipes.NetworkAccess.OPEN: egress.Access.OPEN,
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
