"""`parley agents`: shows the agents of a chat as a tree, and applies what they changed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

from parley.cli.api.client import Api, ApiRefused
from parley.cli.api.requests import current_api, new_key
from parley.cli.chats.id_prefixes import AGENT_ID, CHAT_ID
from parley.cli.chats.listing import chat_path, children_of, status_word
from parley.cli.errors import CliError
from parley.cli.invocation import current
from parley.cli.options import HomeGroup, json_option
from parley.cli.text import print_json, print_list, print_table, sanitized

COLUMNS = ("id", "status", "type", "cost", "name")
TYPE_COLUMNS = ("name", "model", "tools", "description")
MICROS: Final = 1_000_000
#: The gateway gives up on a merge after this time.
MERGE_S: Final = 160.0


class AgentsGroup(HomeGroup):
    """A group whose command is `show` unless another one is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the name of the command if it is missing."""
        is_named = any(each in self.commands or each in ("-h", "--help") for each in args)
        return super().parse_args(ctx, args if is_named else ["show", *args])


@click.group(cls=AgentsGroup)
def agents() -> None:
    """Show the agents of a chat (`parley agents CHAT`), and apply what they changed."""


@agents.command()
@click.argument("chat_id", metavar="CHAT", type=CHAT_ID)
@json_option
def show(chat_id: str, as_json: bool) -> None:
    """Show the agents that the chat CHAT and those below it have started."""
    api = current_api()
    asked = api.call("GET", chat_path(chat_id), needs="id")
    root = asked
    if asked.get("parent_chat_id"):
        root = api.call("GET", chat_path(str(asked["root_chat_id"])), needs="id")
    rows = [
        (depth, {**chat, "own_cost_micros": own_cost_micros(api, str(chat["id"]))})
        for depth, chat in below(str(asked["id"]), children_of(api, root))
    ]
    if as_json:
        items = [chat for _, chat in rows]
        print_json({"items": items})
        return
    table = [row_of(depth, chat) for depth, chat in rows]
    print_table(COLUMNS, table)


@agents.command()
@click.argument("agent_id", metavar="AGENT", type=AGENT_ID)
@json_option
def diff(agent_id: str, as_json: bool) -> None:
    """Show what the agent AGENT, which works in a fork, changed, and what of it was applied."""
    report = merge(current_api(), agent_id, dry_run=True)
    if as_json:
        print_json(report)
        return
    _show_patches(report["merged_paths"], report["patches"])
    for each in report["conflicts"]:
        click.echo(_conflict_line(each))
        if preview := each.get("preview"):
            click.echo(sanitized(preview), nl=not preview.endswith("\n"))
    for line in _left_out_lines(report):
        click.echo(line)
    applied = report.get("applied_merges", ())
    for each in applied:
        click.echo(applied_line(each))
        _show_patches(each["paths"], each["patches"])
    if not report["merged_paths"] and not report["conflicts"] and not applied:
        click.echo("The agent changed nothing.", err=True)


def applied_line(applied: Mapping[str, Any]) -> str:
    """Return when a merge was applied, and how many files it wrote or deleted."""
    count = len(applied["paths"]) + applied["omitted"]
    at = sanitized(str(applied["applied_at"]))
    return f"applied at {at}, {count} {'file' if count == 1 else 'files'}"


def _show_patches(paths: Sequence[str], patches: Sequence[Mapping[str, Any]]) -> None:
    patched = {each["path"] for each in patches}
    for each in patches:
        click.echo(sanitized(each["patch"]), nl=False)
    for path in paths:
        if path not in patched:
            click.echo(f"changed without a text to show: {sanitized(path)}")


@agents.command()
@click.argument("agent_id", metavar="AGENT", type=AGENT_ID)
@click.option("--keep-parent", is_flag=True, help="Keep the version of the chat in conflicts.")
@click.option("--take-fork", is_flag=True, help="Take the version of the agent in conflicts.")
@click.option("--path", "paths", multiple=True, metavar="PATH", help="Apply only this path.")
@json_option
def apply(
    agent_id: str, keep_parent: bool, take_fork: bool, paths: tuple[str, ...], as_json: bool
) -> None:
    """Apply what the agent AGENT changed to the files of the chat that started it."""
    if keep_parent and take_fork:
        raise click.UsageError("Give --keep-parent or --take-fork, not both.")
    strategy = "keep_parent" if keep_parent else "take_fork" if take_fork else "report"
    api = current_api()
    report = merge(api, agent_id, strategy=strategy, paths=list(paths))
    unknown = _unknown_paths(api, agent_id, paths, report)
    if as_json:
        print_json(report)
    elif not unknown or report["merged_paths"] or report["conflicts"]:
        show_merged(report, strategy)
    hint = current().hint(f"agents diff {agent_id}")
    if unknown:
        names = ", ".join(map(sanitized, unknown))
        raise CliError(f"the agent did not change {names}; `{hint}` shows what it changed")
    require_merged(report, strategy, f"give --keep-parent or --take-fork, or --path; see `{hint}`")


def _unknown_paths(
    api: Api, agent_id: str, paths: Sequence[str], report: Mapping[str, Any]
) -> list[str]:
    """Return which of the given paths the agent never changed."""
    unknown = [path for path in paths if not _has_changes(report, path)]
    if not unknown:
        return []
    # With this strategy the paths are complete although some are in conflict.
    whole = merge(api, agent_id, strategy="take_fork", dry_run=True)
    reports = (whole, *({**each, "conflicts": ()} for each in whole["applied_merges"]))
    if any(each["omitted"] for each in reports):
        return []
    return [path for path in unknown if not any(_has_changes(each, path) for each in reports)]


def _has_changes(report: Mapping[str, Any], path: str) -> bool:
    """Return whether a report has the path, or something below it."""
    found = (
        *report.get("merged_paths", ()),
        *report.get("paths", ()),
        *(each["path"] for each in report["conflicts"]),
        *report.get("left_out_paths", ()),
    )
    wanted = path.rstrip("/")
    return any(each == wanted or each.startswith(f"{wanted}/") for each in found)


@agents.command()
@click.argument("chat_id", metavar="CHAT", type=CHAT_ID)
@json_option
def types(chat_id: str, as_json: bool) -> None:
    """Show the types of agents that the workspace of the chat CHAT describes."""
    found = current_api().call("GET", f"{chat_path(chat_id)}/context", needs="parts")
    items = found["agent_types"]
    print_list({"items": items}, TYPE_COLUMNS, map(_type_row, items), as_json=as_json)


def _type_row(each: Mapping[str, Any]) -> tuple[str, ...]:
    tools = ", ".join(each["tool_names"]) or "all"
    model = each["model"] or "of its parent"
    return tuple(map(sanitized, (each["name"], model, tools, each["description"])))


def merge(api: Api, agent_id: str, **body: object) -> dict[str, Any]:
    """Merge the changes of an agent, or show them; return the report."""
    report: dict[str, Any] = api.call(
        "POST",
        f"{chat_path(agent_id)}/merge",
        body,
        new_key(),
        needs="applied",
        within_s=MERGE_S,
    )
    return report


def show_merged(report: Mapping[str, Any], strategy: str = "report") -> None:
    """Print what was applied, kept and conflicts; on standard error if nothing was applied."""
    merged, conflicts = report["merged_paths"], report["conflicts"]
    for path in merged:
        click.echo(sanitized(path))
    for each in conflicts:
        if strategy == "report":
            click.echo(_conflict_line(each))
        elif strategy == "keep_parent":
            click.echo(f"kept as it was ({each['kind']}): {sanitized(each['path'])}")
    for line in _left_out_lines(report):
        click.echo(line)
    if not merged and conflicts and strategy == "keep_parent":
        click.echo("Nothing else was left to apply.", err=True)
    if not merged and not conflicts:
        click.echo(
            "Nothing was left to apply: the changes are there already, or there are none.",
            err=True,
        )


def require_merged(report: Mapping[str, Any], strategy: str, remedy: str) -> None:
    """Check that conflicts did not prevent a merge.

    Raises:
        CliError: They did.
    """
    if strategy == "report" and report["conflicts"]:
        raise CliError(f"nothing was applied: {remedy}")


def _conflict_line(conflict: Mapping[str, Any]) -> str:
    return f"conflict ({conflict['kind']}): {sanitized(conflict['path'])}"


def _left_out_lines(report: Mapping[str, Any]) -> list[str]:
    """Return a line for each path that is not merged."""
    return [f"left out: {sanitized(path)}" for path in report.get("left_out_paths", ())]


def below(
    parent_id: str, chats: Sequence[Mapping[str, Any]], depth: int = 0
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the chats below one, each after its parent, with their depth."""
    for chat in chats:
        if chat.get("parent_chat_id") == parent_id:
            yield depth, chat
            yield from below(str(chat["id"]), chats, depth + 1)


def own_cost_micros(api: Api, chat_id: str) -> int | None:
    """Return what an agent alone cost; None without a known price, and for readers of its chat."""
    try:
        usage = api.call("GET", f"{chat_path(chat_id)}/usage", needs="totals")
    except ApiRefused:
        return None
    own: int | None = usage.get("own_cost_micros")
    return own


def row_of(depth: int, chat: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the row of an agent, with what it cost alone."""
    kind = "explore" if chat.get("mode") == "explore" else "general"
    name = "  " * depth + str(chat.get("title") or "")
    return (str(chat["id"]), status_word(chat), kind, dollars(chat.get("own_cost_micros")), name)


def dollars(micros: int | None) -> str:
    """Return a cost as it is shown; `-` without a known price."""
    return "-" if micros is None else f"${micros / MICROS:.4f}"
