"""Finds users by their logins, and the logins of users by their ids."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from parley.cli.api.client import Api
from parley.cli.api.requests import listed
from parley.cli.errors import CliError
from parley.cli.invocation import current

PATH = "/api/v1/people"
USERS = "/api/v1/users"
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


def list_users(api: Api, query: str = "", *, path: str = USERS) -> list[Any]:
    """Return all users whose names contain `query`, or the users below another path.

    Only administrators and auditors may; service accounts and deactivated users are included.
    """
    return list(listed(api, path, {"q": query}))


def find_user(api: Api, login: str) -> Any | None:
    """Return the user, service account or deactivated user with this login; None for none."""
    return next((each for each in list_users(api, login) if each["login"] == login), None)


def user_with_login(api: Api, login: str) -> Any:
    """Return the user, service account or deactivated user with this login.

    Raises:
        CliError: there is none.
    """
    user = find_user(api, login)
    if user is None:
        raise CliError(f"there is no user {login}: see `{current().hint('users ls')}`")
    return user
