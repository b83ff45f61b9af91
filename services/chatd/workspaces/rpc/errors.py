"""The workspace part of the error table: maps errors of workspaces to problems."""

from chatd.workspaces.domain.errors import (
    NodeLost,
    NodeNotFound,
    NoNode,
    NotAFork,
    QuotaExhausted,
    StaleNode,
    TemplateNotFound,
    TooManyNewWorkspaces,
    WorkspaceNotReady,
)
from chatd.workspaces.domain.secrets import (
    SecretNotFound,
    SecretNotGranted,
    SecretValueNeeded,
)
from parley.rpc import ErrorTable, Problem, Violation

RETRY_NODE_AFTER_S = 5.0


def _not_ready(error: WorkspaceNotReady) -> Problem:
    return Problem.of(
        "WORKSPACE_NOT_READY",
        f"The workspace is {error.state}; next: {error.next_step}.",
        {"state": error.state.value, "next_step": error.next_step},
    )


def _quota(error: QuotaExhausted) -> Problem:
    use = error.use
    return Problem.of(
        "QUOTA_EXHAUSTED",
        f"You have {use.used} of at most {use.limit} {use.dimension.replace('_', ' ')}: "
        f"{use.how_to_free}.",
        {
            "dimension": use.dimension.value,
            "used": str(use.used),
            "limit": str(use.limit),
            "remedy": use.how_to_free,
        },
    )


def _too_many_new(error: TooManyNewWorkspaces) -> Problem:
    return Problem.of(
        "TOO_MANY_NEW_WORKSPACES",
        f"You have created or started {error.created_max} workspaces within a minute, which is the "
        "most; try again later.",
        {"limit": str(error.created_max)},
        retry_after_s=error.retry_after_s,
    )


def _no_node(error: NoNode) -> Problem:
    return Problem.of(
        "NO_NODE",
        f"No machine can host the workspace: {error.cause}.",
        retry_after_s=RETRY_NODE_AFTER_S,
    )


def _node_lost(error: NodeLost) -> Problem:
    return Problem.of(
        "NODE_LOST",
        "The machine of this workspace does not answer; try again later, or start the workspace "
        "to have it made again elsewhere.",
        {"node_id": error.node_id},
        retry_after_s=RETRY_NODE_AFTER_S,
    )


def _node_not_found(error: NodeNotFound) -> Problem:
    return Problem.of(
        "NODE_NOT_FOUND",
        "There is no such node; register it first.",
        {"node_id": error.node_id},
    )


def _stale_node(error: StaleNode) -> Problem:
    return Problem.of(
        "STALE_NODE",
        "The registration of this node is out of date; register again.",
        {"node_id": error.node_id},
    )


def _template_not_found(error: TemplateNotFound) -> Problem:
    return Problem.of(
        "TEMPLATE_NOT_FOUND",
        "There is no such template, or you may not use it.",
        {"template_id": error.template_id},
    )


def _not_a_fork(error: NotAFork) -> Problem:
    return Problem.of(
        "NOT_A_FORK",
        "The workspace is no fork of another, so there is nothing to merge it into.",
        {"workspace_id": error.workspace_id},
    )


def _secret_not_found(error: SecretNotFound) -> Problem:
    return Problem.of(
        "SECRET_NOT_FOUND",
        "There is no such secret, or it is not yours; list them to see which there are.",
        {"secret": error.secret},
    )


def _secret_not_granted(error: SecretNotGranted) -> Problem:
    return Problem.of(
        "SECRET_NOT_GRANTED",
        "The workspace may not use this secret there; its owner can grant it.",
        {"secret": error.name, "cause": error.outcome.value},
    )


def _secret_value_needed(error: SecretValueNeeded) -> Problem:
    return Problem.of(
        "SECRET_VALUE_NEEDED",
        "The change would send the stored value to another host or in another way; give the "
        "value again in the same request.",
        {"name": error.name},
        violations=(Violation("value", "give the value again: hosts, delivery or header change"),),
    )


WORKSPACE_ERRORS: ErrorTable = {
    WorkspaceNotReady: _not_ready,
    QuotaExhausted: _quota,
    TooManyNewWorkspaces: _too_many_new,
    NoNode: _no_node,
    NodeLost: _node_lost,
    NodeNotFound: _node_not_found,
    StaleNode: _stale_node,
    TemplateNotFound: _template_not_found,
    NotAFork: _not_a_fork,
    SecretNotFound: _secret_not_found,
    SecretNotGranted: _secret_not_granted,
    SecretValueNeeded: _secret_value_needed,
}
