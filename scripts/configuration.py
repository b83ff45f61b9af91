"""Writes `docs/configuration.md` from the settings of the services, or checks it."""

import importlib
import inspect
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from mcpgateway import demo
from parley.cli.stack.model_providers import PROVIDER_VARIABLES
from parley.cli.stack.request import KNOWN_VARIABLES
from parley.cli.stack.spec import CHATD, GATEWAY, MCPGATEWAY, TOOLRUNNER, prefix_of
from parley.process import ServiceSettings
from parley.settings import SettingLine, describe

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"
SERVICES = (GATEWAY, CHATD, TOOLRUNNER, MCPGATEWAY)
ANY_PREFIX = "SERVICE"

INTRODUCTION = """\
# Configuration

<!-- Written by scripts/configuration.py; a test compares. Change the settings, then run it. -->

`parley up` needs none of this: it chooses addresses, keys and roles itself and hands them to its
processes. Services that are started one by one, as in `compose.yaml`, read everything from
environment variables. A service reports every problem at once and ends with exit code 2; a variable
with its prefix that it does not know is a problem too.

A secret may also be given by a file: `CHATD_DATABASE_URL_FILE` names a file that holds what
`CHATD_DATABASE_URL` would. Addresses are `unix:/path.sock`, `tcp:host:port` or `tls:host:port`; a
list is separated by commas, and `tls:chatd-1..3:7002` in a list means three addresses. An empty
variable counts as not set.
"""

COMMAND = """\
## The `parley` command

`parley up` also passes on every variable that begins with a service's prefix, unless it sets it
itself; then it refuses to start and says so. With a service's own `METRICS_LISTEN` its first
process serves metrics there and each further one on the next free port. `GATEWAY_PUBLIC_URL` says
the same as `--public-url`.
"""

COMMON = """\
## Every service

Each service reads these under its own prefix: `GATEWAY_`, `CHATD_`, `TOOLRUNNER_`, `MCPGATEWAY_`.
"""

#: Types of a service's own, in the words of who sets them.
TYPES: Mapping[str, str] = {
    "hostport": "host:port",
    "httpaddress": "host:port",
    "httpurl": "URL",
    "policy": "comma-separated list",
    "publicurl": "URL",
}

COMMAND_DOCS: Mapping[str, str] = {
    "PARLEY_API_KEY": "The API key for the stack at `PARLEY_URL`.",
    "PARLEY_DATABASE_URL": "The PostgreSQL to use instead of the embedded one, like `--database`.",
    "PARLEY_DEBUG": "With 1, a failure shows its traceback.",
    "PARLEY_HOME": "Where Parley keeps its data, like `--home`; `~/.parley` without it.",
    "PARLEY_METRICS_LISTEN": "The host:port of the metrics of the first process; each further "
    "process of any service takes the next free port. `parley status` lists them.",
    "PARLEY_RESTART_PAUSE_MAX_S": "The longest pause, in seconds, before a process that ends "
    "again and again is started again; 10 without it.",
    "PARLEY_URL": "A stack elsewhere that commands talk to instead of the one in the home.",
    "PARLEY_ENVIRONMENT": "Given to every service as its `ENVIRONMENT`.",
    "PARLEY_LOG_FORMAT": "Given to every service as its `LOG_FORMAT`.",
    "PARLEY_LOG_LEVEL": "Given to every service as its `LOG_LEVEL`.",
    "PARLEY_OTLP_ENDPOINT": "Given to every service as its `OTLP_ENDPOINT`.",
    **{
        name: f"Given to chatd alone, as its `CHATD_{setting}`."
        for name, setting in PROVIDER_VARIABLES.items()
    },
}


def settings_type(service: str) -> type[ServiceSettings]:
    """Return the settings class of `service`."""
    module = importlib.import_module(f"{service}.settings")
    (found,) = (
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, ServiceSettings)
        and value.__module__ == module.__name__
    )
    return found


def document() -> str:
    """Return the whole document."""
    common = describe(ServiceSettings, prefix=ANY_PREFIX)
    shared = {line.name.removeprefix(f"{ANY_PREFIX}_") for line in common}
    sections = [INTRODUCTION, COMMAND + "\n" + _command_table(), COMMON + "\n" + _table(common)]
    for service in SERVICES:
        prefix = prefix_of(service)
        own = [
            line
            for line in describe(settings_type(service), prefix=prefix)
            if line.name.removeprefix(f"{prefix}_") not in shared
        ]
        sections.append(f"## {service}\n\n{_table(own)}")
    demo_lines = describe(demo.Settings, prefix=demo.PREFIX)
    sections.append(f"## The MCP server of the demo\n\n{_table(demo_lines)}")
    return "\n".join(sections)


def _command_table() -> str:
    wrong = set(COMMAND_DOCS) ^ {*KNOWN_VARIABLES, *PROVIDER_VARIABLES}
    if wrong:
        raise SystemExit(f"COMMAND_DOCS in {__file__} is wrong about {sorted(wrong)}")
    rows = [(f"`{name}`", doc) for name, doc in sorted(COMMAND_DOCS.items())]
    return _rows(("variable", "what it decides"), rows)


def _table(lines: Iterable[SettingLine]) -> str:
    rows = [
        (
            " or ".join(f"`{name}`" for name in line.name.split(" or ")),
            TYPES.get(line.type, line.type),
            _default(line),
            line.doc.replace("|", "\\|"),
        )
        for line in lines
    ]
    return _rows(("variable", "type", "default", "what it decides"), rows)


def _default(line: SettingLine) -> str:
    if line.is_required:
        return "must be set"
    return f"`{line.default}`" if line.default else "none"


def _rows(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def main(arguments: list[str]) -> int:
    """Write the document, or with --check say whether it is what the settings give."""
    text = document()
    if "--check" in arguments:
        is_current = DOCUMENT.exists() and DOCUMENT.read_text() == text
        if not is_current:
            print(f"{DOCUMENT.name} is stale: run scripts/configuration.py", file=sys.stderr)
        return 0 if is_current else 1
    DOCUMENT.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
