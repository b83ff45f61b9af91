"""What git in a workspace asks for a password: a program that has none and says what to do.

The proxy adds credentials to what git asks of it, so git needs none itself. When a host wants one
all the same, this tells why, and stops git from asking a person who is not there. It runs in the
workspace and needs nothing but the standard library.
"""

import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

PATIENCE_S: Final = 10.0
TLS: Final = "https/"


def asked_host(lines: Iterable[str], base: str) -> str:
    """Return the host that wants a password, as git describes it; empty for none of ours.

    Args:
        lines: What git says, `key=value` each.
        base: The proxy's address.
    """
    said = dict(line.rstrip("\n").partition("=")[::2] for line in lines if "=" in line)
    host = said.get("host", "")
    if said.get("protocol") == "https":
        return host
    if host != urlsplit(base).netloc.rpartition("@")[2]:
        return ""
    path = said.get("path", "").lstrip("/")
    if path.startswith("~"):
        path = path.partition("/")[2]
    return path.removeprefix(TLS).partition("/")[0] if path.startswith(TLS) else ""


def explanation(base: str, host: str) -> str:
    """Return what the proxy says about a host."""
    # Without a proxy: this is a question to the proxy itself.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{base}/parley/credential/{host}", timeout=PATIENCE_S) as answer:
            return str(answer.read(4096).decode("utf-8", "replace")).strip()
    except (OSError, ValueError) as error:
        return f"The workspace's proxy cannot be asked about {host}: {error}"


def main(words: list[str], environment: Mapping[str, str]) -> int:
    """Answer git."""
    if words[:1] != ["get"]:
        return 0
    base = environment.get("PARLEY_EGRESS", "")
    host = asked_host(sys.stdin, base) if base else ""
    if host:
        print(f"parley: {explanation(base, host)}", file=sys.stderr)
        print("quit=1")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))  # noqa: TID251 (this is the program)
