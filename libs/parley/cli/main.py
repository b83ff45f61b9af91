"""The `parley` command group: its commands, and how a failure ends the process.

The table below is sufficient for `parley --help`; a command's module is imported when the command
is called, so that help and small commands start quickly.
"""

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import click

from parley.cli.errors import CliError
from parley.cli.invocation import Invocation, program_called
from parley.cli.options import HomeGroup
from parley.cli.text import sanitized

#: Command -> (module with a click command of the same name, "_" for "-", one line of help).
COMMANDS: Mapping[str, tuple[str, str]] = {
    "up": ("parley.cli.commands.up", "Start Parley on this machine and look after it."),
    "down": ("parley.cli.commands.down", "Stop it."),
    "status": ("parley.cli.commands.status", "Show its processes and their health."),
    "logs": ("parley.cli.commands.logs", "Show what the processes wrote."),
    "run": ("parley.cli.commands.run", "Ask one thing in a new chat and print the answer."),
    "ls": ("parley.cli.commands.show", "List chats."),
    "search": ("parley.cli.commands.show", "Find words in chats."),
    "show": ("parley.cli.commands.show", "Print a chat and what was said in it."),
    "send": ("parley.cli.commands.send", "Send a message to a chat and print the answer."),
    "interrupt": ("parley.cli.commands.send", "Stop what a chat does."),
    "actions": ("parley.cli.commands.actions", "List what chats wait for."),
    "answer": ("parley.cli.commands.actions", "Answer a question, a plan or a permission."),
    "agents": (
        "parley.cli.chats.agents",
        "Show the agents of a chat; apply their changes.",
    ),
    "race": ("parley.cli.chats.race", "Give one task to several models, and apply the best."),
    "fork": ("parley.cli.commands.revert", "Copy a chat up to a message into a new one."),
    "revert": ("parley.cli.commands.revert", "Go back in a chat, with its files or without."),
    "checkpoints": (
        "parley.cli.workspaces.checkpoints",
        "Show the files that a turn changed, as it left them.",
    ),
    "context": ("parley.cli.commands.context", "Tell what the prompt of a chat consists of."),
    "todos": ("parley.cli.chats.monitor", "Show the to-do list of a chat."),
    "tail": ("parley.cli.commands.show", "Follow a chat, from its beginning or a cursor."),
    "output": (
        "parley.cli.workspaces.output",
        "Print the output of a process of a chat as it comes.",
    ),
    "login": ("parley.cli.accounts.login", "Sign in to a server, for later commands."),
    "logout": ("parley.cli.accounts.login", "Sign out of it."),
    "whoami": ("parley.cli.accounts.login", "Print who commands act as, and where."),
    "share": ("parley.cli.accounts.share", "Let others read a chat."),
    "users": ("parley.cli.accounts.users", "List, invite, lock out, export and delete users."),
    "groups": ("parley.cli.accounts.groups", "Make groups of users for shares and limits."),
    "api-keys": ("parley.cli.accounts.api_keys", "Make, list and revoke one's own API keys."),
    "sessions": ("parley.cli.accounts.sessions", "List and end one's own browser sessions."),
    "account": ("parley.cli.accounts.account", "Export all that is one's own."),
    "notifications": (
        "parley.cli.accounts.notifications",
        "See, test and delete the devices that are notified.",
    ),
    "break-glass": (
        "parley.cli.accounts.break_glass",
        "Read chats of others, with a reason that they see.",
    ),
    "approvals": (
        "parley.cli.administration.approvals",
        "Let tool calls run, ask first, or refuse them.",
    ),
    "spend-limits": (
        "parley.cli.administration.spend_limits",
        "Limit what users may spend, and see what one spent.",
    ),
    "hook": (
        "parley.cli.administration.hook",
        "Send events of chats to HTTP consumers that may refuse or change them.",
    ),
    "fallback": (
        "parley.cli.administration.fallback",
        "Choose the model that continues when a provider is down.",
    ),
    "advisor": (
        "parley.cli.administration.advisor",
        "Let agents ask a model without tools for advice.",
    ),
    "issuers": (
        "parley.cli.administration.issuers",
        "Add identity providers that people sign in with.",
    ),
    "retention": (
        "parley.cli.chats.retention",
        "Show what happens to old chats, done or to come.",
    ),
    "schedule": ("parley.cli.chats.schedule", "Send messages at a time or repeatedly."),
    "monitor": ("parley.cli.chats.monitor", "Show what wakes a chat, and cancel it."),
    "goal": ("parley.cli.chats.goal", "Let a chat go on until a check passes."),
    "mcp": ("parley.cli.mcp_servers.mcp", "Add MCP servers, probe them, and call their tools."),
    "models": ("parley.cli.accounts.models", "List models, and keep own choices among them."),
    "skill": ("parley.cli.accounts.skill", "Keep skills, which models read when they need them."),
    "secret": ("parley.cli.commands.secret", "Keep secrets and grant them to workspaces."),
    "workspace": ("parley.cli.commands.workspace", "Make, list, stop and remove workspaces."),
    "template": (
        "parley.cli.workspaces.template",
        "List templates, and fix how long workspaces live.",
    ),
    "doctor": ("parley.cli.commands.doctor", "Show what this machine offers and lacks."),
    "token": ("parley.cli.commands.token", "Issue, list and revoke tokens for internal callers."),
    "audit": (
        "parley.cli.commands.audit",
        "Check what must hold of stored chats; read the audit log.",
    ),
    "keys": ("parley.cli.commands.keys", "Rotate keys while Parley runs."),
    "certs": ("parley.cli.commands.certs", "Issue and renew certificates for mTLS."),
    "init": ("parley.cli.commands.init", "Make the secrets of services that run apart."),
    "health": ("parley.cli.commands.health", "Ask one service whether it is well."),
    "llm-mock": ("parley.cli.commands.llm_mock", "Play model providers, with faults if wanted."),
    "scaletest": ("parley.cli.commands.scaletest", "Put load on a Parley and check every event."),
    "replay": ("parley.cli.commands.llm_mock", "Play recorded answers through the real adapters."),
}

INTERRUPTED = 130


class LazyGroup(HomeGroup):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(COMMANDS[cmd_name][0])
        command = getattr(module, cmd_name.replace("-", "_"))
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table, without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="parley", prog_name="parley")
def cli() -> None:
    """Run and use Parley, a self-hosted backend for agent chats."""


def run(arguments: Sequence[str], invocation: Invocation) -> int:
    """Run one command and return its exit code; failures are printed on standard error."""
    try:
        outcome: Any = cli.main(
            list(arguments), prog_name=invocation.program, standalone_mode=False, obj=invocation
        )
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except CliError as error:
        if invocation.is_debug:
            raise
        for line in error.lines:
            click.echo(f"parley: {sanitized(line)}", err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the output closed the pipe; Python must not report it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if invocation.is_debug:
            raise
        click.echo(
            f"parley: {type(error).__name__}: {error} (set PARLEY_DEBUG=1 for the traceback)",
            err=True,
        )
        return 1
    return outcome if isinstance(outcome, int) else 0


def main() -> NoReturn:
    """Run the command that the process arguments name, and exit."""
    environment = dict(os.environ)  # noqa: TID251 (the one place where the command reads it)
    program = program_called(sys.argv[0], environment.get("PATH"))
    sys.exit(run(sys.argv[1:], Invocation(environment, program)))
