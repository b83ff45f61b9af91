"""`parley login`, `logout` and `whoami`: the API key of the command line."""

import socket
import sys

import click

from parley.cli.api.client import Api, ApiRefused, Unreachable
from parley.cli.api.server import Server, check_url, default_url, find_server
from parley.cli.api.sign_in import KEYS, SignIn, one_time_link
from parley.cli.errors import ConfigurationProblem
from parley.cli.home.stored_login import StoredLogin, login_file, store_login, stored_login
from parley.cli.invocation import current
from parley.cli.options import HomeCommand, check_terminal, json_option
from parley.cli.text import print_json

DAYS_DEFAULT = 90
NAME_CHARACTERS_MAX = 64


@click.command(cls=HomeCommand)
@click.argument("address", required=False)
@click.option("--login", "login_name", metavar="NAME", help="The login; asked for otherwise.")
@click.option("--name", metavar="TEXT", help="What the key is called (default: this machine).")
@click.option(
    "--days", type=click.IntRange(min=1, max=366), default=DAYS_DEFAULT, show_default=True,
    help="How long the key is good.",
)  # fmt: skip
@click.option(
    "--password-stdin",
    is_flag=True,
    help="Read the password from the first line of standard input, and the code of a second "
    "factor from the second; needs --login.",
)
def login(
    address: str | None,
    login_name: str | None,
    name: str | None,
    days: int,
    password_stdin: bool,
) -> None:
    """Sign in to ADDRESS, a server or the one-time link of an invitation.

    Without ADDRESS it is PARLEY_URL, or the Parley that runs in the home.
    """
    invocation = current()
    key_name = (name or f"parley on {socket.gethostname()}")[:NAME_CHARACTERS_MAX]
    link = None if address is None else one_time_link(address)
    url = default_url(invocation) if address is None else link.url if link else address.rstrip("/")
    check_url(url, "ADDRESS")
    if password_stdin and link is None and login_name is None:
        raise click.UsageError(
            "--password-stdin needs --login NAME: standard input contains the password only."
        )
    if not password_stdin:
        needs_login = link is None and login_name is None
        check_terminal(f"{'--login NAME and ' if needs_login else ''}--password-stdin")
    sign_in = SignIn(url, lambda: _code(password_stdin))
    if link is not None:
        who = sign_in.login_of_link(link.token)
        click.echo(f"Your login is {who}.", err=True)
        password = _password("New password", password_stdin, is_new=True)
        stored = sign_in.by_link(who, link.token, password, name=key_name, days=days)
    else:
        who = login_name or click.prompt("Login", err=True)
        password = _password("Password", password_stdin)
        stored = sign_in.by_password(who, password, name=key_name, days=days)
    replaced = _replaced_login()
    path = store_login(invocation, stored)
    click.echo(f"Signed in to {stored.url} as {stored.login}; the key is in {path}.")
    if replaced is not None:
        _revoke_replaced(replaced)


@click.command(cls=HomeCommand)
def logout() -> None:
    """Revoke the key of `parley login`, and remove it from this machine."""
    invocation = current()
    stored = stored_login(invocation)
    if stored is None:
        click.echo("Nobody is signed in here.")
        return
    is_revoked = _revoke(stored)
    login_file(invocation).unlink()
    if is_revoked:
        click.echo(f"Signed out of {stored.url}.")
        return
    click.echo(
        f"The key is removed here, but {stored.url} does not answer: revoke {stored.api_key_id} "
        "there when it does."
    )


@click.command(cls=HomeCommand)
@json_option
def whoami(as_json: bool) -> None:
    """Print who commands act as, and on which server."""
    server = find_server(current())
    me = Api(server).call("GET", "/api/v1/me", needs="login")
    if as_json:
        print_json({**me, "url": server.url}, as_ascii=True)
        return
    click.echo(f"{me['login']} ({me['role']}) at {server.url}")


def _replaced_login() -> StoredLogin | None:
    """Return the sign-in that another one replaces; None without one that can be used."""
    try:
        return stored_login(current())
    except ConfigurationProblem:
        return None


def _revoke_replaced(replaced: StoredLogin) -> None:
    """Revoke a key that no file contains any more, or say that it is still good."""
    try:
        if _revoke(replaced):
            return
    except ApiRefused:
        pass
    click.echo(
        f"The key of {replaced.login} that was in the file before may still be good: revoke "
        f"{replaced.api_key_id} at {replaced.url}.",
        err=True,
    )


def _revoke(stored: StoredLogin) -> bool:
    """Revoke the key of a sign-in; return whether its server could be asked."""
    try:
        Api(Server(stored.url, stored.api_key)).call("DELETE", f"{KEYS}/{stored.api_key_id}")
    except ApiRefused as error:
        # A key that is not good any more needs no revocation.
        if error.status != 401:
            raise
    except Unreachable:
        return False
    return True


def _code(from_stdin: bool) -> str:
    if from_stdin:
        code = sys.stdin.readline().strip()
        if not code:
            raise ConfigurationProblem(
                "the user has a second factor: write its code, or a recovery code, on the second "
                "line of standard input, after the password"
            )
        return code
    typed: str = click.prompt("Code of the authenticator app, or a recovery code", err=True)
    return typed


def _password(text: str, from_stdin: bool, *, is_new: bool = False) -> str:
    if from_stdin:
        return sys.stdin.readline().rstrip("\n")
    typed: str = click.prompt(text, hide_input=True, confirmation_prompt=is_new, err=True)
    return typed
