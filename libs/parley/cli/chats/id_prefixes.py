"""Ids on the command line, which may be shortened, or given as names of what has names.

A prefix of at least six characters is enough if only one of the caller's own has it. Whole ids are
passed on without asking the server.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

import click

from parley.cli.api.client import Api
from parley.cli.api.requests import current_api, listed
from parley.cli.chats.listing import CHATS, chat_path, children_of, one_line
from parley.cli.errors import CliError, ConfigurationProblem
from parley.cli.invocation import current

PREFIX_CHARACTERS_MIN: Final = 6
SHOWN_MAX: Final = 10
RACES: Final = "/api/v1/races"
WORKSPACES: Final = "/api/v1/workspaces"
SCHEDULES: Final = "/api/v1/schedules"
ID_SHAPE: Final = "00000000-0000-0000-0000-000000000000"
_WHOLE: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Item = Mapping[str, Any]
Listing = Callable[[Api], Iterable[Item]]


class NoSuchItem(CliError):
    """Nothing of the caller's own has this name, id or prefix of an id."""

    def __init__(self, what: str, name: str, command: str) -> None:
        hint = current().hint(command)
        super().__init__(f"there is no {what} {name}; `{hint}` shows what there is")
        self.what = what
        self.name = name


class PrefixAmbiguous(ConfigurationProblem):
    """Several ids have the prefix."""

    def __init__(self, what: str, prefix: str, found: list[Item]) -> None:
        shown = [f"  {each['id']}  {_label(each)}".rstrip() for each in found[:SHOWN_MAX]]
        more = len(found) - len(shown)
        super().__init__(
            f"{len(found)} {what}s have ids that begin with {prefix}: give more characters",
            *shown,
            *([f"  and {more} more"] if more else []),
        )


class IdParameter(click.ParamType[str]):
    """The type of an argument or option that takes an id, a prefix of one, or a name.

    Args:
        what: What has the id, for messages.
        command: The command that lists the ids.
        listings: What the caller has; a later list is read only if the earlier ones have no match.
        named_by: The field that has the name, in which letter case does not matter; empty for none.
        passes_others: Whether what can be neither an id nor a name is left to the server, whose
            message says the same.
    """

    name = "id"

    def __init__(
        self,
        what: str,
        command: str,
        *listings: Listing,
        named_by: str = "",
        passes_others: bool = False,
    ) -> None:
        self._what = what
        self._command = command
        self._listings = listings
        self._named_by = named_by
        self._passes_others = passes_others

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the whole id.

        Raises:
            NoSuchItem: Nothing has this name, and no id begins with the value.
            PrefixAmbiguous: Several do.
        """
        text = str(value)
        may_be_found = is_prefix(text) or bool(self._named_by)
        is_passed_on = self._passes_others and not may_be_found
        if not text or is_whole_id(text) or is_passed_on:
            return text
        for listing in self._listings if may_be_found else ():
            found = self._found(list(listing(current_api())), text)
            if found is not None:
                return str(found["id"])
        raise NoSuchItem(self._what, one_line(text), self._command)

    def _found(self, items: list[Item], text: str) -> Item | None:
        for item in items if self._named_by else ():
            if str(item[self._named_by]).casefold() == text.casefold():
                return item
        return item_with_prefix(items, self._what, text) if is_prefix(text) else None


def is_whole_id(text: str) -> bool:
    """Return whether a text is an id that is not shortened."""
    return _WHOLE.fullmatch(text.lower()) is not None


def is_prefix(text: str) -> bool:
    """Return whether a text is the beginning of an id that is long enough to look for."""
    is_part = PREFIX_CHARACTERS_MIN <= len(text) < len(ID_SHAPE)
    return is_part and _WHOLE.fullmatch(text.lower() + ID_SHAPE[len(text) :]) is not None


def item_with_prefix(items: Iterable[Item], what: str, prefix: str) -> Item | None:
    """Return the item whose id begins with a prefix; None if there is none.

    Raises:
        PrefixAmbiguous: There are several.
    """
    found = list({each["id"]: each for each in items if _has_prefix(each, prefix)}.values())
    if len(found) > 1:
        raise PrefixAmbiguous(what, prefix, found)
    return found[0] if found else None


def item_named(api: Api, path: str, what: str, name: str) -> Any:
    """Return the item of a list that has this name or id, or else this prefix of its id.

    Raises:
        NoSuchItem: There is none.
        PrefixAmbiguous: Several ids begin with it.
    """
    items = list(listed(api, path))
    for item in items:
        if name in (item["name"], item["id"]):
            return item
    found = item_with_prefix(items, what, name) if is_prefix(name) else None
    if found is None:
        raise NoSuchItem(what, name, f"{what} ls")
    return found


def _has_prefix(item: Item, prefix: str) -> bool:
    return str(item["id"]).startswith(prefix.lower())


def _label(item: Item) -> str:
    return one_line(str(item.get("title") or item.get("name") or ""))


def _chats(api: Api) -> Iterator[Item]:
    """Yield the chats that the caller may read, without agents."""
    filters: tuple[dict[str, str], ...] = ({}, {"archived": "true"}, {"shared_with_me": "true"})
    return chain.from_iterable(listed(api, CHATS, each) for each in filters)


def _agents(api: Api) -> Iterator[Item]:
    """Yield the agents of these chats."""
    for chat in _chats(api):
        if chat.get("child_count"):
            yield from children_of(api, api.call("GET", chat_path(str(chat["id"])), needs="id"))


def _races(api: Api) -> Iterable[Item]:
    races: list[Item] = api.call("GET", RACES, needs="items")["items"]
    return races


def _workspaces(api: Api) -> Iterator[Item]:
    return listed(api, WORKSPACES)


def _schedules(api: Api) -> Iterator[Item]:
    return listed(api, SCHEDULES)


def _users(api: Api) -> Iterator[Item]:
    return listed(api, "/api/v1/users")


def _groups(api: Api) -> Iterator[Item]:
    return listed(api, "/api/v1/groups")


#: An agent is a chat as well, which has a path of its own.
CHAT_ID: Final = IdParameter("chat", "ls", _chats, _agents, passes_others=True)
#: As a field of a request, of which the server would say only that it is no id.
CHOSEN_CHAT_ID: Final = IdParameter("chat", "ls", _chats, _agents)
AGENT_ID: Final = IdParameter("agent", "agents CHAT", _agents)
RACE_ID: Final = IdParameter("race", "race ls", _races)
SCHEDULE_ID: Final = IdParameter("schedule", "schedule ls", _schedules)
WORKSPACE_ID: Final = IdParameter("workspace", "workspace ls", _workspaces, named_by="name")
USER_ID: Final = IdParameter("user", "users ls", _users, named_by="login")
GROUP_ID: Final = IdParameter("group", "groups ls", _groups, named_by="name")
