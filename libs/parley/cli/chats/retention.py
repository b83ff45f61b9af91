"""`parley retention`: shows what happens to chats by age."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import click

from parley.cli.api.requests import current_api
from parley.cli.options import HomeCommand, json_option
from parley.cli.text import print_json, text_table

DAYS = ("day", "noticed", "withdrawn", "archived", "purged")
ITEMS = ("chat_id", "owner_id", "step", "at")
POLICY = ("auto_archive_days", "retention_days", "retention_notice_days")

days_type = click.IntRange(min=0, max=3650)


@click.command(cls=HomeCommand)
@click.option("--dry-run", is_flag=True, help="Show what would happen now; nothing is changed.")
@click.option(
    "--archive-days",
    type=days_type,
    help="With --dry-run: as if chats were archived then.",
)
@click.option(
    "--purge-days", type=days_type, help="With --dry-run: as if archived ones were deleted then."
)
@click.option("--notice-days", type=click.IntRange(min=0, max=365), help="With --dry-run: as if.")
@json_option
def retention(
    dry_run: bool,
    archive_days: int | None,
    purge_days: int | None,
    notice_days: int | None,
    as_json: bool,
) -> None:
    """Show what was archived and deleted by age, or with --dry-run what would be."""
    given = dict(zip(POLICY, (archive_days, purge_days, notice_days), strict=True))
    given = {name: days for name, days in given.items() if days is not None}
    if given and not dry_run:
        raise click.UsageError("These days are for --dry-run; PATCH /api/v1/settings changes them.")
    path = "/api/v1/retention" + (f"?{urlencode(given)}" if given else "")
    shown = current_api().call("GET", path)
    if as_json:
        print_json(shown, as_ascii=True)
        return
    for line in _policy_lines(*(int(shown[name]) for name in POLICY)):
        click.echo(line)
    if not dry_run:
        if shown["days"]:
            click.echo(_table(DAYS, shown["days"]), nl=False)
        else:
            click.echo("No chat has been archived or deleted by age.")
        return
    counts = [f"{each['chats']} {each['step']}" for each in shown["counts"] if each["chats"]]
    click.echo("would now: " + (", ".join(counts) or "nothing"))
    if shown["items"]:
        click.echo(_table(ITEMS, shown["items"]), nl=False)


def _policy_lines(archive_days: int, purge_days: int, notice_days: int) -> Iterator[str]:
    after = f"after {_days(archive_days)} without a change" if archive_days else "never"
    yield f"Chats are archived: {after}."
    after = f"{_days(purge_days)} after they were archived" if purge_days else "never"
    yield f"Archived chats are deleted: {after}."
    if archive_days or purge_days:
        yield f"Owners are told: {_days(notice_days)} before."


def _days(number: int) -> str:
    return f"{number} day{'' if number == 1 else 's'}"


def _table(columns: tuple[str, ...], items: list[dict[str, Any]]) -> str:
    return text_table(columns, [[str(item[column]) for column in columns] for item in items])
