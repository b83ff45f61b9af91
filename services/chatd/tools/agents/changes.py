"""Applies the changes of an agent that works in a fork to the workspace of its parent."""

from typing import Final, Protocol

from chatd.chats.domain.agents import Agent, AgentsRefused
from chatd.chats.domain.errors import FenceLost
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.tools import Execution, Outcome
from chatd.primitives.domain.ids import ChatId, Owner, OwnerClaim, OwnerId
from chatd.tools.agents.inputs import ApplyInput
from chatd.tools.workspace.arguments import BadArguments
from chatd.tools.workspace.results import failed, refused, succeeded
from chatd.workspaces.domain.merges import MergeReport, MergeRequest, MergeStrategy
from parley.rpc import Refusal

PATHS_SHOWN: Final = 500
CONFLICTS_SHOWN: Final = 100
PREVIEWS_CHARACTERS_MAX: Final = 20_000
PATCHES_CHARACTERS_MAX: Final = 40_000

NEXT_STEPS: Final = {
    "conflicts": "Nothing was applied. Call again with strategy keep_parent or take_fork, or with "
    "paths that do not conflict; or message the agent to resolve it.",
    "dry": "Nothing was applied. Call again without dry_run to apply it.",
    "none": "The agent changed nothing that you do not have already.",
}


class Forks(Protocol):
    """The forks in which agents work."""

    async def fork(
        self, chat_id: ChatId, agent_id: ChatId, owner: Owner, claim: OwnerClaim | None = None
    ) -> None:
        """Copy the workspace of a chat for an agent; a repeated request finds the copy.

        Raises:
            FenceLost: Another process owns the chat, and nothing was copied.
            ChatError: no copy could be made.
        """
        ...

    async def discard(self, agent_id: ChatId) -> None:
        """Remove the fork of an agent that was not started."""
        ...

    async def merge(
        self, agent_id: ChatId, owner_id: OwnerId, request: MergeRequest
    ) -> MergeReport:
        """Merge the changes of an agent into the workspace that it was copied from.

        Raises:
            ChatError: the agent has no fork, or its files are not there.
            Refusal: the node refuses or does not respond.
        """
        ...


class RunningTurns(Protocol):
    """The turns in which chats are."""

    async def require_running(self, claim: OwnerClaim) -> None:
        """Require that a chat still runs the turn of a claim.

        Raises:
            AgentsRefused: The chat is interrupted.
            FenceLost: Another process owns the chat, or its turn is over.
        """
        ...


async def apply_changes(
    turns: RunningTurns, forks: Forks, execution: Execution, agent: Agent, given: ApplyInput
) -> Outcome:
    """Merge the changes of an agent; a repeated call returns the first report.

    The turn is checked before the node is asked, and the node refuses a turn after which the chat
    has worked there in a newer one: no transaction is open while a node merges.

    Raises:
        BadArguments: The agent has no fork, still works, or nothing may be written now.
        FenceLost: Another process owns the chat, or its turn is over, and nothing was merged.
        ChatError: Its files are not there.
    """
    if not agent.is_forked:
        raise BadArguments(
            "this agent works in your own files", "there is nothing to apply; read its report"
        )
    if not agent.is_done:
        raise BadArguments("this agent still works", "call wait_agents or interrupt_agent first")
    if not given.dry_run and execution.dispatch.mode is not ChatMode.ORDINARY:
        raise BadArguments("nothing may be written now", "set dry_run to see the changes")
    request = MergeRequest(
        f"agent-{execution.dispatch.execution_id}",
        MergeStrategy(given.strategy),
        given.paths,
        is_dry=given.dry_run,
        chat_id=execution.chat_id,
        turn_id=execution.context.turn_id,
        owner_epoch=execution.owner_epoch,
    )
    try:
        if not given.dry_run:
            await turns.require_running(execution.claim)
        report = await forks.merge(agent.chat_id, execution.owner.id, request)
    except AgentsRefused as interrupted:
        hint = "Call it again if the user wants the changes."
        return failed(f"Nothing was applied: {interrupted}.", interrupted.reason, hint)
    except Refusal as refusal:
        if refusal.problem.reason == "STALE_OWNER":
            raise FenceLost(execution.chat_id) from refusal
        if refusal.problem.reason == "UPSTREAM_UNAVAILABLE":
            # Changes that were applied already are not applied again.
            hint = "Call again: what was applied already stays as it is."
            return failed(refusal.problem.message, refusal.problem.reason, hint)
        return refused(refusal.problem)
    return _told(agent, report, given)


def _told(agent: Agent, report: MergeReport, given: ApplyInput) -> Outcome:
    fields: dict[str, object] = {
        "agent_id": agent.chat_id,
        "applied": report.is_applied,
        "merged_paths": list(report.merged_paths[:PATHS_SHOWN]),
        "conflicts": _conflicts(report),
    }
    hidden = max(0, len(report.merged_paths) - PATHS_SHOWN)
    hidden += max(0, len(report.conflicts) - CONFLICTS_SHOWN)
    if report.omitted + hidden:
        fields["omitted"] = report.omitted + hidden
    if report.left_out_paths:
        # Caches of programs, which are made again, and what no merge can take over.
        fields["left_out_paths"] = list(report.left_out_paths)
    if given.dry_run:
        patches = "".join(each.patch for each in report.patches)
        fields["patch"] = patches[:PATCHES_CHARACTERS_MAX]
        fields["patch_is_cut"] = len(patches) > PATCHES_CHARACTERS_MAX
    if report.applied_merges:
        fields["applied_before"] = [
            {
                "applied_at": each.applied_at.isoformat(timespec="seconds"),
                "files": len(each.paths) + each.omitted,
            }
            for each in report.applied_merges
        ]
    return succeeded(fields, next_step=_next_step(report, given))


def _conflicts(report: MergeReport) -> list[dict[str, str]]:
    room = PREVIEWS_CHARACTERS_MAX
    shown: list[dict[str, str]] = []
    for conflict in report.conflicts[:CONFLICTS_SHOWN]:
        told = {"path": conflict.path, "kind": conflict.kind}
        if conflict.preview and len(conflict.preview) <= room:
            told["preview"] = conflict.preview
            room -= len(conflict.preview)
        shown.append(told)
    return shown


def _next_step(report: MergeReport, given: ApplyInput) -> str:
    if report.is_applied:
        return ""
    if report.conflicts and given.strategy == "report":
        return NEXT_STEPS["conflicts"]
    if given.dry_run and report.merged_paths:
        return NEXT_STEPS["dry"]
    return NEXT_STEPS["none"]
