"""Definitions of MCP servers in the `.mcp.json` of a workspace; all of it is untrusted."""

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Final

import msgspec

PATH: Final = ".mcp.json"
FILE_BYTES_MAX: Final = 64 * 1024
SERVERS_MAX: Final = 16
ARGUMENTS_MAX: Final = 64
VARIABLES_MAX: Final = 64
TEXT_CHARACTERS_MAX: Final = 4096
NAME_CHARACTERS_MAX: Final = 32
# No double underscore: it separates the server from the tool in the names of tools.
_NAME: Final = re.compile(r"[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

BAD_NAME: Final = (
    f"its name must have at most {NAME_CHARACTERS_MAX} letters, digits, hyphens and single "
    "underscores; rename it"
)
NOT_STDIO: Final = "only servers with a command are started in a workspace; remove its url"


@dataclass(frozen=True, slots=True)
class ServerDefinition:
    """One server as the file defines it.

    Attributes:
        name: Its name, unique in the file.
        command: The program.
        arguments: The arguments of the program.
        environment: Variables besides those of the workspace.
        digest: Changes with everything above; what is trusted is this.
        problem: Why it cannot be started; empty if it can.
    """

    name: str
    command: str = ""
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    digest: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Definitions:
    """All servers of a workspace.

    Attributes:
        problem: Why the file cannot be read; empty if it can, or if there is none.
    """

    servers: tuple[ServerDefinition, ...] = ()
    problem: str = ""

    def named(self, name: str) -> ServerDefinition | None:
        """Return a server by its name; None if there is none."""
        return next((each for each in self.servers if each.name == name), None)


NO_SERVERS: Final = Definitions()


def definitions_of(text: str, *, is_whole: bool = True) -> Definitions:
    """Read the content of the file; a server that is not well formed keeps its place, as unusable.

    Args:
        text: The content.
        is_whole: Whether that is all of the file.
    """
    if not is_whole or len(text) > FILE_BYTES_MAX:
        return Definitions(problem=f"{PATH} is larger than {FILE_BYTES_MAX} bytes; shorten it")
    try:
        document = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return Definitions(problem=f"{PATH} is not valid JSON; correct it")
    servers = document.get("mcpServers") if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        return Definitions(problem=f"{PATH} has no object mcpServers; add it")
    if len(servers) > SERVERS_MAX:
        return Definitions(problem=f"{PATH} has more than {SERVERS_MAX} servers; remove some")
    return Definitions(tuple(_definition(name, given) for name, given in servers.items()))


def _definition(name: str, given: Any) -> ServerDefinition:
    if len(name) > NAME_CHARACTERS_MAX or _NAME.fullmatch(name) is None:
        shown = "".join(each if each.isprintable() else "?" for each in name)
        return ServerDefinition(shown[:NAME_CHARACTERS_MAX], problem=BAD_NAME)
    if not isinstance(given, dict):
        return ServerDefinition(name, problem="its definition is no object; correct it")
    if "command" not in given and "url" in given:
        return ServerDefinition(name, problem=NOT_STDIO)
    command, arguments = given.get("command"), given.get("args", [])
    environment = given.get("env", {})
    if not _is_text(command) or not command:
        return ServerDefinition(name, problem="its command is no text; correct it")
    if not _are_arguments(arguments):
        return ServerDefinition(
            name, problem=f"its args are no list of at most {ARGUMENTS_MAX} texts; correct them"
        )
    if not _is_environment(environment):
        return ServerDefinition(
            name, problem=f"its env is no object of at most {VARIABLES_MAX} texts; correct it"
        )
    variables = tuple(sorted(environment.items()))
    digest = hashlib.sha256(msgspec.json.encode([name, command, arguments, variables]))
    return ServerDefinition(name, command, tuple(arguments), variables, digest.hexdigest())


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= TEXT_CHARACTERS_MAX and "\0" not in value


def _are_arguments(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= ARGUMENTS_MAX and all(map(_is_text, value))


def _is_environment(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= VARIABLES_MAX
        and all(_VARIABLE.fullmatch(key) and _is_text(text) for key, text in value.items())
    )
