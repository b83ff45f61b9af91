"""Names of workspaces: the requested name if it is valid, otherwise one derived from it."""

import re
from typing import Final

from chatd.workspaces.domain.templates import NAME

NAME_CHARACTERS_MAX: Final = 64
_UNFIT: Final = re.compile(r"[^a-z0-9]+")


def fitting_name(asked: str, template_name: str, suffix: str) -> str:
    """Return the requested name, or one derived from it; `suffix` makes it unique."""
    if NAME.fullmatch(asked) is not None:
        return asked
    return made_name(asked or template_name, suffix)


def made_name(like: str, suffix: str) -> str:
    """Return a valid name derived from a text, with the suffix."""
    slug = _UNFIT.sub("-", like.casefold()).strip("-") or "workspace"
    return f"{slug[: NAME_CHARACTERS_MAX - len(suffix) - 1].rstrip('-')}-{suffix}"
