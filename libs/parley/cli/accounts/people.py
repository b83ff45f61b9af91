"""Finds users by their logins, and the logins of users by their ids."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from parley.cli.api.client import Api
from parley.cli.errors import CliError

PATH = "/api/v1/people"
IDS_MAX = 100


def person_with_login(api: Api, login: str) -> Any:
    """Return the user with this login.

    Raises:
        CliError: there is none; it lists those with similar names.
    """
    query = urlencode({"q": login, "limit": 50})
    found = api.call("GET", f"{PATH}?{query}", needs="items")["items"]
    for person in found:
        if person["login"] == login:
            return person
    similar = ", ".join(f"{each['login']} ({each['display_name']})" for each in found[:5])
    raise CliError(f"there is no user {login}" + (f"; did you mean {similar}?" if similar else ""))


def logins_of(api: Api, user_ids: Iterable[str]) -> dict[str, str]:
    """Return the logins of users by their ids; those who were deleted are missing."""
    wanted = sorted(set(user_ids))
    found: dict[str, str] = {}
    for start in range(0, len(wanted), IDS_MAX):
        query = urlencode([("id", each) for each in wanted[start : start + IDS_MAX]])
        page = api.call("GET", f"{PATH}?{query}", needs="items")
        found |= {each["id"]: each["login"] for each in page["items"]}
    return found
