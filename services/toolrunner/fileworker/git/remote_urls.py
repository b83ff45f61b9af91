"""URLs of remotes, without credentials."""

import re
from typing import Final
from urllib.parse import urlsplit, urlunsplit

ADDRESS_MAX: Final = 2000
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def without_credentials(address: str) -> str:
    """Return a URL without passwords, tokens and the query.

    The user in `git@host:path` and `ssh://git@host` is not a secret.
    """
    if not _SCHEME.match(address):
        return address[:ADDRESS_MAX]
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    users, at, host = parts.netloc.rpartition("@")
    is_ssh = parts.scheme in ("ssh", "git+ssh")
    user = f"{users.partition(':')[0]}@" if at and is_ssh and users else ""
    return urlunsplit((parts.scheme, f"{user}{host}", parts.path, "", ""))[:ADDRESS_MAX]
