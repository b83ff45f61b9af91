"""`parley spend-limits`: how much a user, a group or everyone may spend in a period."""

import re
from decimal import Decimal
from typing import Any

import click

from parley.cli.accounts.groups import PATH as GROUPS
from parley.cli.accounts.groups import group_with_name
from parley.cli.accounts.people import list_users, user_with_login
from parley.cli.api.client import Api
from parley.cli.api.requests import current_api, listed, new_key
from parley.cli.options import HomeGroup, json_option
from parley.cli.text import print_json, print_table
from parley.cli.time_words import until
from parley.clock import SystemClock

PATH = "/api/v1/spend-limits"
OWN = "/api/v1/me/spend"
COLUMNS = ("for", "dollars", "per")
PERIODS = ("month", "week", "day")
MICROS = 1_000_000
AMOUNT = re.compile(r"[0-9]{1,8}(\.[0-9]{1,6})?")
EVERYONE = "everyone"

user_option = click.option("--user", "login", metavar="LOGIN", help="For this user.")
group_option = click.option("--group", metavar="GROUP", help="For each member of this group.")
everyone_option = click.option(
    "--everyone", is_flag=True, help="For each user who has no other limit."
)


class Dollars(click.ParamType[int]):
    """An amount in US dollars, as millionths of one."""

    name = "dollars"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the amount in millionths, or refuse what is none."""
        micros = int(Decimal(value) * MICROS) if AMOUNT.fullmatch(value) else 0
        if not micros:
            self.fail(f"{value!r} is no amount of US dollars above 0, such as 12.50", param, ctx)
        return micros


@click.group("spend-limits", cls=HomeGroup)
def spend_limits() -> None:
    """Limit what users may spend in a day, a week or a month; for administrators."""


@spend_limits.command()
@json_option
def ls(as_json: bool) -> None:
    """List the limits."""
    api = current_api()
    found = list(listed(api, PATH))
    if as_json:
        print_json({"items": found}, as_ascii=True)
        return
    names = _names(api) if any(not each["everyone"] for each in found) else {}
    rows = [
        (_subject(each, names), _dollars(each["limit_micros"]), each["period"]) for each in found
    ]
    print_table(COLUMNS, rows)


@spend_limits.command("set")
@click.argument("micros", metavar="DOLLARS", type=Dollars())
@user_option
@group_option
@everyone_option
@click.option("--per", "period", type=click.Choice(PERIODS), default=PERIODS[0], show_default=True)
def set_limit(
    micros: int, login: str | None, group: str | None, everyone: bool, period: str
) -> None:
    """Let a user, each member of a group, or everyone spend DOLLARS in a period, in UTC."""
    api = current_api()
    path, name = _limited(api, login, group, everyone)
    body = {"limit_micros": micros, "period": period}
    made = api.call("PUT", path, body, new_key(), needs="limit_micros")
    click.echo(f"{name}: {_dollars(made['limit_micros'])} US dollars per {made['period']}")


@spend_limits.command()
@user_option
@group_option
@everyone_option
def rm(login: str | None, group: str | None, everyone: bool) -> None:
    """Remove a limit."""
    api = current_api()
    path, name = _limited(api, login, group, everyone)
    api.call("DELETE", path, None, new_key())
    click.echo(f"Removed the limit of {name}.")


@spend_limits.command()
@json_option
def mine(as_json: bool) -> None:
    """Print what you spent in the period, and your limit; for every user."""
    found = current_api().call("GET", OWN, needs="spent_micros")
    if as_json:
        print_json(found, as_ascii=True)
        return
    limit = found.get("limit")
    allowed = f" of {_dollars(limit['limit_micros'])}" if limit else ", without a limit"
    end = until(found["resets_at"], SystemClock().now())
    click.echo(f"{_dollars(found['spent_micros'])} US dollars{allowed}, until {end}")


def _limited(api: Api, login: str | None, group: str | None, everyone: bool) -> tuple[str, str]:
    """Return the path of a limit, and whose it is.

    Raises:
        UsageError: None or several are named.
    """
    if [login is not None, group is not None, everyone].count(True) != 1:
        raise click.UsageError("Give one of --user, --group and --everyone.")
    if login is not None:
        return f"{PATH}/users/{user_with_login(api, login)['id']}", login
    if group is not None:
        found = group_with_name(api, group)
        return f"{PATH}/groups/{found['id']}", str(found["name"])
    return f"{PATH}/{EVERYONE}", EVERYONE


def _names(api: Api) -> dict[str, str]:
    """Return the logins of users and the names of groups by their ids."""
    users = {each["id"]: each["login"] for each in list_users(api)}
    return users | {each["id"]: f"group {each['name']}" for each in listed(api, GROUPS)}


def _subject(limit: Any, names: dict[str, str]) -> str:
    if limit["everyone"]:
        return EVERYONE
    subject_id = limit["user_id"] or limit["group_id"]
    return names.get(subject_id, str(subject_id))


def _dollars(micros: int) -> str:
    """Return an amount in dollars with cents, and with further digits as far as there are any."""
    whole, rest = divmod(micros, MICROS)
    digits = f"{rest:06}".rstrip("0").ljust(2, "0")
    return f"{whole}.{digits}"
