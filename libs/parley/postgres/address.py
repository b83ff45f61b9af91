"""Database addresses as text that asyncpg and SQLAlchemy both read."""

from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit, urlunsplit


def compose_url(
    *, role: str, password: str, database: str, host: str | Path, port: int = 5432
) -> str:
    """Return the URL of `database` for `role`; a `Path` host is a UNIX socket's directory."""
    login = f"{quote(role, safe='')}:{quote(password, safe='')}"
    name = quote(database, safe="")
    if isinstance(host, Path):
        where = urlencode({"host": str(host), "port": port})
        return f"postgresql://{login}@/{name}?{where}"
    bracketed = f"[{host}]" if ":" in host else host
    return f"postgresql://{login}@{bracketed}:{port}/{name}"


def with_database(url: str, database: str) -> str:
    """Return `url` with another database name."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"/{quote(database, safe='')}"))


def without_password(url: str) -> str:
    """Return `url` without its password, for display."""
    parts = urlsplit(url)
    login, at, where = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{login.partition(':')[0]}{at}{where}"))
