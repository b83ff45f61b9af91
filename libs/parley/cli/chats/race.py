"""`parley race`: gives one task to several models, compares them, and applies the work of one."""

import json
import threading
import uuid
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any, Final
from urllib.parse import quote

import click

from parley.cli.api.client import Api
from parley.cli.api.requests import current_api
from parley.cli.api.retries import get, post
from parley.cli.chats.agents import (
    applied_line,
    dollars,
    merge,
    own_cost_micros,
    require_merged,
    show_merged,
)
from parley.cli.chats.default_model import list_models
from parley.cli.chats.id_prefixes import RACE_ID, WORKSPACE_ID, is_whole_id
from parley.cli.chats.id_prefixes import RACES as PATH
from parley.cli.errors import CliError
from parley.cli.options import HomeGroup, json_option
from parley.cli.text import print_json, print_list, print_table, sanitized

COLUMNS: Final = ("#", "model", "status", "check", "files", "lines", "time", "cost", "answer")
LIST_COLUMNS: Final = ("id", "created", "title")
ENDED: Final = frozenset({"done", "failed"})
EVERY_S: Final = 1.0
REQUEST_S: Final = 160.0
ANSWER_CHARACTERS: Final = 60
Json = dict[str, Any]


class RaceGroup(HomeGroup):
    """A group whose command is `start` unless the first argument names another one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the name of the command if it is missing."""
        is_named = not args or args[0] in self.commands or args[0] in ("-h", "--help")
        return super().parse_args(ctx, args if is_named else ["start", *args])


@click.group(cls=RaceGroup)
def race() -> None:
    """Give one task to several models (`parley race TASK --model A --model B`)."""


@race.command()
@click.argument("task", metavar="TASK")
@click.option("--model", "models", multiple=True, required=True, help="A model; 2 to 6 of them.")
@click.option("--check", default="", metavar="COMMAND", help="Succeeds if the work is good.")
@click.option(
    "--workspace", default="", type=WORKSPACE_ID, metavar="WORKSPACE", help="The workspace to copy."
)
@click.option("--timeout", "timeout_s", default=3600.0, help="Seconds to wait at most.")
@click.option("--no-wait", is_flag=True, help="Print the id and do not wait.")
@json_option
def start(
    task: str,
    models: tuple[str, ...],
    check: str,
    workspace: str,
    timeout_s: float,
    no_wait: bool,
    as_json: bool,
) -> None:
    """Give TASK to several models, each in a copy of the workspace, and compare them."""
    api = current_api()
    body = {"prompt": task, "models": list(models), "check_command": check}
    body |= {"workspace_id": workspace} if workspace else {}
    made = _post(api, PATH, body)
    if no_wait:
        click.echo(json.dumps(made, indent=2, ensure_ascii=False) if as_json else made["id"])
        return
    click.echo(f"race {made['id']}", err=True)
    _show(api, _ended(api, str(made["id"]), monotonic() + timeout_s), as_json=as_json)


@race.command()
@click.argument("race_id", metavar="RACE", type=RACE_ID)
@json_option
def show(race_id: str, as_json: bool) -> None:
    """Compare the candidates of RACE: answers, changes, checks, times and costs."""
    api = current_api()
    _show(api, _checked(api, api.call("GET", _path(race_id), needs="id")), as_json=as_json)


@race.command()
@json_option
def ls(as_json: bool) -> None:
    """List races, the newest first."""
    items = current_api().call("GET", PATH, needs="items")["items"]
    rows = ((each["id"], each["created_at"], each["title"]) for each in items)
    print_list({"items": items}, LIST_COLUMNS, rows, as_json=as_json)


@race.command()
@click.argument("race_id", metavar="RACE", type=RACE_ID)
def cancel(race_id: str) -> None:
    """Stop all candidates of RACE."""
    api = current_api()
    before = api.call("GET", _path(race_id), needs="candidates")["candidates"]
    _post(api, f"{_path(race_id)}/cancel", {})
    has_ended = all(each["status"] in ENDED for each in before)
    click.echo("It had ended before: there was nothing to cancel." if has_ended else "cancelled")


@race.command()
@click.argument("race_id", metavar="RACE", type=RACE_ID)
@click.argument("candidate", metavar="CANDIDATE")
@click.option("--keep-parent", is_flag=True, help="Keep the version of the workspace in conflicts.")
@click.option("--take-fork", is_flag=True, help="Take the version of the candidate in conflicts.")
@json_option
def apply(race_id: str, candidate: str, keep_parent: bool, take_fork: bool, as_json: bool) -> None:
    """Apply the changes of CANDIDATE, a number or model of RACE, to the workspace."""
    if keep_parent and take_fork:
        raise click.UsageError("Give --keep-parent or --take-fork, not both.")
    api = current_api()
    found = api.call("GET", _path(race_id), needs="candidates")
    strategy = "keep_parent" if keep_parent else "take_fork" if take_fork else "report"
    named = _named(api, found["candidates"])
    body = {"position": position_of(named, candidate), "strategy": strategy}
    report = _post(api, f"{_path(race_id)}/apply", body, needs="report")["report"]
    if as_json:
        print_json(report)
    else:
        show_merged(report, strategy)
    require_merged(report, strategy, "give --keep-parent or --take-fork")


def position_of(candidates: Sequence[Mapping[str, Any]], named: str) -> int:
    """Return the place of a candidate that is named by its place or its model."""
    for each in candidates:
        if named in (str(each["position"]), each["model"], each["model_id"], each["chat_id"]):
            return int(each["position"])
    known = ", ".join(f"{each['position']} ({each['model']})" for each in candidates)
    raise CliError(f"the race has no candidate {sanitized(named)}; it has {sanitized(known)}")


def row_of(candidate: Mapping[str, Any], report: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the line of a candidate, with what it changed if that is known."""
    check = candidate.get("check")
    answer = " ".join((candidate["answer"] or candidate["error"] or "").split())
    is_long = len(answer) > ANSWER_CHARACTERS
    cut = f" (cut: {candidate['cut']})" if candidate.get("cut") else ""
    return (
        str(candidate["position"]),
        candidate["model"],
        candidate["status"],
        "" if not check else "passed" if check["passed"] else "failed",
        "" if report is None else str(_files(report)),
        "" if report is None else _lines(report),
        f"{candidate['duration_ms'] / 1000:.1f} s",
        dollars(candidate["cost_micros"]),
        (f"{answer[:ANSWER_CHARACTERS]}…" if is_long else answer) + cut,
    )


def _files(report: Mapping[str, Any]) -> int:
    """Return how many files a candidate changed, those that were applied included."""
    applied = report.get("applied_merges", ())
    paths = {*report["merged_paths"], *(each["path"] for each in report["conflicts"])}
    return len(paths.union(*(each["paths"] for each in applied)))


def _lines(report: Mapping[str, Any]) -> str:
    merges = (report, *report.get("applied_merges", ()))
    patches = [each["patch"] for merge in merges for each in merge["patches"]]
    lines = [line for patch in patches for line in patch.splitlines()]
    added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    return f"+{added} -{removed}"


def _show(api: Api, found: Json, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    candidates = [_priced(api, each) for each in _named(api, found["candidates"])]
    reports = [
        merge(api, each["chat_id"], dry_run=True) if each["status"] in ENDED else None
        for each in candidates
    ]
    compared = list(zip(candidates, reports, strict=True))
    print_table(COLUMNS, [row_of(*each) for each in compared])
    for line in applied_lines(compared):
        click.echo(line)


def _named(api: Api, candidates: Sequence[Json]) -> list[Json]:
    """Return candidates with the names of models that were given as ids."""
    if not any(is_whole_id(each["model"]) for each in candidates):
        return list(candidates)
    names = {each["id"]: each["name"] for each in list_models(api)}
    return [{**each, "model": names.get(each["model"], each["model"])} for each in candidates]


def _priced(api: Api, candidate: Json) -> Json:
    """Return a candidate whose cost is None if its model has no price."""
    if candidate["cost_micros"] or candidate["status"] not in ENDED:
        return candidate
    return {**candidate, "cost_micros": own_cost_micros(api, candidate["chat_id"])}


def applied_lines(
    compared: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]],
) -> list[str]:
    """Return a line for each merge of a candidate that was applied."""
    return [
        f"candidate {candidate['position']} ({sanitized(candidate['model'])}): {applied_line(each)}"
        for candidate, report in compared
        for each in (report or {}).get("applied_merges", ())
    ]


def _ended(api: Api, race_id: str, deadline: float) -> Json:
    """Return a race when all its candidates have ended and were checked."""
    pause = threading.Event().wait
    late = f"the race {race_id} goes on; parley race show {race_id} compares it later"
    while True:
        found: Json = get(
            api, _path(race_id), needs="candidates", deadline=deadline, pause=pause, late=late
        )
        if all(each["status"] in ENDED for each in found["candidates"]):
            return _checked(api, found)
        pause(EVERY_S)


def _checked(api: Api, found: Json) -> Json:
    """Return a race after the candidates that have ended were checked."""
    is_due = found["check_command"] and any(
        each["status"] in ENDED and not each.get("check") for each in found["candidates"]
    )
    return _post(api, f"{_path(found['id'])}/check", {}) if is_due else found


def _post(api: Api, path: str, body: Mapping[str, Any], needs: str = "id") -> Json:
    answer: Json = post(
        api,
        path,
        body,
        key=str(uuid.uuid4()),  # noqa: TID251 (a command's own composition root)
        needs=needs,
        deadline=monotonic() + REQUEST_S,
        pause=threading.Event().wait,
        late="the server did not answer in time",
    )
    return answer


def _path(race_id: str) -> str:
    return f"{PATH}/{quote(race_id, safe='')}"
