"""Requests of commands: their server, repeatable ones, lists by pages, hints after refusals."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlencode

from parley.cli.api.client import REQUEST_S_MAX, Api, ApiRefused
from parley.cli.api.server import find_server
from parley.cli.errors import CliError
from parley.cli.invocation import current

#: The largest page of most lists.
PAGE_MAX: Final = 200


def listed(
    api: Api,
    path: str,
    query: Mapping[str, str | Sequence[str]] | None = None,
    *,
    count: int | None = None,
    page_max: int = PAGE_MAX,
    within_s: float = REQUEST_S_MAX,
) -> Iterator[dict[str, Any]]:
    """Yield the items of a list in its order.

    Args:
        api: The server.
        path: The path of the list.
        query: Its filters; those without a value are left out.
        count: How many items to yield at most; None for all of them.
        page_max: How many items the list returns at once.
        within_s: How long to wait for each page.
    """
    asked = {name: value for name, value in (query or {}).items() if value}
    while count is None or count > 0:
        asked["limit"] = str(page_max if count is None else min(count, page_max))
        page = api.call("GET", f"{path}?{urlencode(asked, True)}", needs="items", within_s=within_s)
        yield from page["items"]
        count = None if count is None else count - len(page["items"])
        cursor = page.get("next_cursor")
        if not cursor:
            return
        asked["cursor"] = cursor


def current_api() -> Api:
    """Return the server of the click command that is running."""
    return Api(find_server(current()))


def new_key() -> dict[str, str]:
    """Return the header with which a request can be repeated safely."""
    key = str(uuid.uuid4())  # noqa: TID251 (a command's own composition root)
    return {"Idempotency-Key": f'"{key}"'}


@contextmanager
def hint_on(code: str, hint: str, command: str) -> Iterator[None]:
    """Append a hint to the message of a refusal; also a decorator of commands.

    Args:
        code: The code of the refusal; others stay as they are.
        hint: What to do, with {} in place of the command.
        command: The command, without the name of the program.

    Raises:
        CliError: the refusal, with the hint.
    """
    try:
        yield
    except ApiRefused as error:
        if error.code != code:
            raise
        named = hint.format(f"`{current().hint(command)}`")
        raise CliError(f"{error.message}; {named}") from error


#: A decorator of commands that take a model.
model_hint = hint_on("MODEL_NOT_FOUND", "{} lists the models", "models ls")
