"""The description of a chat's workspace at the beginning of a prompt.

The text is the same from turn to turn as long as nothing changed, so that providers can use their
prompt cache: the time of the autostop is included only shortly before it.
"""

from datetime import datetime, timedelta
from typing import Final

from chatd.workspaces.domain.spec import Network, WorkspaceSpec
from chatd.workspaces.domain.workspace import State, Workspace

NEAR: Final = timedelta(minutes=30)
HOSTS_SHOWN: Final = 20

DETACHED: Final = """\
No workspace was set up for this chat. Its tools work in a scratch directory of the chat's own, \
empty at first and made when a tool needs it; for questions, snippets and small files that is \
enough, so do not create a workspace by default. When the work needs a repository, a prepared \
environment or a machine of its own, or the user asks for a workspace, call list_templates and \
follow its next_step."""

DETACHED_CHILD: Final = """\
No workspace was set up for this chat, and you cannot create one: only the chat that started you \
can. Your tools work in its scratch directory. If the task needs more than that, stop and report \
which workspace is needed and why."""

FORKED_CHILD: Final = """\
Your tools work in a copy of the files of the chat that started you, made when you were started. \
What you change there changes nothing of the original until that chat takes your changes, file by \
file: so leave no files behind that are of no use to it, and report which you changed. Commits are \
not taken, and what it changes meanwhile is not seen here. You cannot create a workspace."""


def workspace_description(workspace: Workspace | None, now: datetime, *, is_child: bool) -> str:
    """Return the description: attached, detached, or for a child: detached, or in its fork."""
    if is_child and _is_fork_of_agent(workspace):
        return FORKED_CHILD
    if workspace is None or workspace.state is State.DELETED or workspace.is_scratch_of_chat:
        return DETACHED_CHILD if is_child else DETACHED
    return "\n".join(_attached(workspace, now, is_child=is_child))


def _is_fork_of_agent(workspace: Workspace | None) -> bool:
    return workspace is not None and workspace.is_scratch_of_chat and bool(workspace.parent_id)


def _attached(workspace: Workspace, now: datetime, *, is_child: bool) -> list[str]:
    lines = [
        f"This chat has the workspace {workspace.name} (kind {workspace.kind}"
        f"{_template(workspace)}), and its tools work there: on Linux, in the directory "
        f"{workspace.root_path or 'of the workspace'}."
    ]
    if workspace.git_branch:
        lines.append(f"The branch {workspace.git_branch} is checked out; work on it.")
    lines.extend(_network(workspace.spec))
    match workspace.state:
        case State.READY | State.BUSY:
            lines.extend(_ending(workspace, now))
        case State.STOPPED | State.FAILED:
            lines.append(f"It is {workspace.state} now. {_restart(is_child=is_child)}")
        case _:
            lines.append(f"It is {workspace.state} now; a tool that needs it waits for it.")
    return lines


def _network(spec: WorkspaceSpec) -> list[str]:
    """Describe the network policy, and how secrets are delivered."""
    network, lines = spec.network, []
    if network.access is Network.PROXY:
        allowed = (*(f"preset {preset}" for preset in network.presets), *network.allowed_hosts)
        shown = ", ".join(allowed[:HOSTS_SHOWN]) or "nothing"
        more = f" and {len(allowed) - HOSTS_SHOWN} more" if len(allowed) > HOSTS_SHOWN else ""
        lines.append(
            f"Its network access is: proxy; it reaches {shown}{more}, through a proxy that "
            "programs find by themselves, and nothing else."
        )
    elif network.access is not Network.OPEN:
        lines.append(f"Its network access is: {network.access}.")
    if spec.secret_names:
        lines.append(
            f"These secrets are granted to it: {', '.join(spec.secret_names)}. They are added "
            "outside of it to what git asks of their hosts, and to requests that other programs "
            'send to "$PARLEY_EGRESS/https/HOST/PATH" instead of https://HOST/PATH; one that is '
            "delivered as a variable is in the environment, under its name in capitals."
        )
    return lines


def _template(workspace: Workspace) -> str:
    return f", from template {workspace.template_name}" if workspace.template_name else ""


def _ending(workspace: Workspace, now: datetime) -> list[str]:
    deadline = workspace.deadline_at
    if deadline is None:
        return []
    if deadline - now > NEAR:
        hours = workspace.lifetime.ttl_ms / 3_600_000
        return [
            f"It stops by itself after {hours:g} hours unless something is done in it; its files "
            "are kept then."
        ]
    return [f"It stops by itself at {deadline:%H:%M} UTC unless something is done in it."]


def _restart(*, is_child: bool) -> str:
    if is_child:
        return "You cannot start it: report that it is needed."
    return "Call start_workspace before you use it."
