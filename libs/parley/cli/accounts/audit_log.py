"""`parley audit log`: reads, exports and verifies the audit log."""

import re
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import Any

import click

from parley.cli.accounts.people import list_users
from parley.cli.api.client import Api
from parley.cli.api.requests import current_api, listed
from parley.cli.errors import CliError, ConfigurationProblem
from parley.cli.invocation import current
from parley.cli.options import HomeCommand, json_option
from parley.cli.text import print_json, print_table

NDJSON = "application/x-ndjson"
PATH = "/api/v1/audit-log"
COLUMNS = ("seq", "at", "action", "outcome", "actor", "subject", "object", "address", "details")
VERIFY_S_MAX = 660.0
KEY_DIGITS = 64
HEX_KEY = re.compile(rf"[0-9a-fA-F]{{{KEY_DIGITS}}}")
INTACT = 0
FOUND = 1
UNSIGNED = (
    "Nothing was checked against a signature, and a log that was written anew looks intact too: "
    "give --heads with the file of signed heads."
)


def _moment(_: click.Context, option: click.Parameter, text: str) -> str:
    """Return a moment as RFC 3339; a date alone is the start of that day in UTC."""
    if not text:
        return ""
    with suppress(ValueError):
        return f"{date.fromisoformat(text).isoformat()}T00:00:00Z"
    with suppress(ValueError):
        if datetime.fromisoformat(text).tzinfo is not None:
            return text
    raise click.BadParameter(
        f"{text!r} is no time: write a date such as 2026-07-01, or a time with its zone such as "
        "2026-07-01T08:30:00Z",
        param=option,
    )


@click.command(cls=HomeCommand)
@click.option("--user", "login", metavar="LOGIN", help="What this user did, or what concerns them.")
@click.option("--action", default="", help="Such as user.created, or user for all of that type.")
@click.option(
    "--object", "object_id", default="", metavar="ID", help="What was done to this object."
)
@click.option("--since", default="", metavar="TIME", callback=_moment,
              help="Only from this time on, RFC 3339, or from a date on, in UTC.")  # fmt: skip
@click.option(
    "--until", default="", metavar="TIME", callback=_moment, help="Only before this time."
)
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True)
@json_option
@click.option("--export", "export_to", type=click.Path(path_type=Path), metavar="FILE",
              help="Write all of it to FILE, as JSON lines.")  # fmt: skip
@click.option(
    "--verify", "is_verified", is_flag=True, help="Check the chain instead of printing it."
)
@click.option("--file", "exported", type=click.Path(path_type=Path, exists=True, dir_okay=False),
              metavar="FILE", help="Verify an export instead of the server's log.")  # fmt: skip
@click.option("--heads", "heads_file", metavar="FILE",
              type=click.Path(path_type=Path, exists=True, dir_okay=False),
              help="Signed heads to verify an export against.")  # fmt: skip
@click.option("--key", "key_text", metavar="KEY",
              help="The public key that must have signed them: hexadecimal, or a file with it or "
              "with PEM. Needed for a log that was pruned.")  # fmt: skip
def log(
    login: str | None,
    action: str,
    object_id: str,
    since: str,
    until: str,
    limit: int,
    as_json: bool,
    export_to: Path | None,
    is_verified: bool,
    exported: Path | None,
    heads_file: Path | None,
    key_text: str | None,
) -> int:
    """Print who did what to whom, newest first; for administrators and auditors.

    With --verify, exit code 1 if a line was changed, removed, inserted or moved, or the end was cut
    off. Lines that were pruned by the retention are not missing: a signed checkpoint names them.
    """
    if exported is not None or heads_file is not None or key_text is not None:
        if not (is_verified and exported is not None):
            raise ConfigurationProblem(
                "--file, --heads and --key are for --verify: give --verify --file"
            )
        if heads_file is None:
            _warn(UNSIGNED)
        return _print_verification(_verify_file(exported, heads_file, key_text), as_json)
    api = current_api()
    if is_verified:
        found = api.call("GET", f"{PATH}/verification", needs="problems", within_s=VERIFY_S_MAX)
        return _print_verification(found, as_json)
    if export_to is not None:
        _export(api, export_to)
        return INTACT
    logins = _logins(api)
    filters = {"action": action, "object_id": object_id, "start": since, "end": until}
    if login is not None:
        filters["user_id"] = _user_id(logins, login)
    entries = list(listed(api, PATH, filters, count=limit))
    if not entries:
        _check_action(action)
    if as_json:
        print_json({"items": entries}, as_ascii=True)
        return INTACT
    print_table(COLUMNS, [_row(each, logins) for each in entries])
    return INTACT


def _logins(api: Api) -> dict[str, str]:
    """Return the logins of all users by their ids."""
    return {each["id"]: each["login"] for each in list_users(api)}


def _user_id(logins: dict[str, str], login: str) -> str:
    for user_id, known in logins.items():
        if login in (known, user_id):
            return user_id
    raise CliError(f"there is no user {login}: see `{current().hint('users ls')}`")


def _check_action(action: str) -> None:
    """Refuse an action for which nothing was found, unless there is such an action.

    Raises:
        CliError: There is none.
    """
    # Imported here: help and listing do not need cryptography.
    from parley.audit_log import AuditAction

    if action and not any(action in (each, each.partition(".")[0]) for each in AuditAction):
        raise CliError(f"there is no action {action}: docs/audit-log.md lists them")


def _row(entry: Any, logins: dict[str, str]) -> list[str]:
    def person(user_id: str | None) -> str:
        return "" if user_id is None else logins.get(user_id, user_id)

    details = " ".join(f"{name}={text}" for name, text in sorted(entry["details"].items()) if text)
    return [
        str(entry["seq"]),
        entry["at"],
        entry["action"],
        entry["outcome"],
        # Without an id: a service, somebody who is not known, or a user who was deleted.
        person(entry["actor_id"]) or "-",
        person(entry["subject_id"]),
        entry["object_id"] or "",
        entry["address"] or "",
        details,
    ]


def _export(api: Api, target: Path) -> None:
    """Write the log to a new file that only its owner can read; an incomplete one is removed."""
    if target.exists():
        raise CliError(f"{target} exists; choose another name")
    unfinished = target.with_name(f".{target.name}.unfinished")
    try:
        with unfinished.open("xb") as file:
            unfinished.chmod(0o600)
            for piece in api.download(f"{PATH}/export", NDJSON):
                file.write(piece)
        unfinished.replace(target)
    except OSError as error:
        raise CliError(f"{target} cannot be written: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    click.echo(f"The audit log is in {target}.", err=True)


def _public_key(text: str) -> bytes:
    """Return a public key that is given as hexadecimal digits or as a file."""
    # Imported here: help and listing do not need cryptography.
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    if not HEX_KEY.fullmatch(text):
        try:
            text = Path(text).read_text("ascii").strip()
        except (OSError, ValueError) as error:
            raise CliError(f"--key is neither a key of {KEY_DIGITS} digits nor a file") from error
    if HEX_KEY.fullmatch(text):
        return bytes.fromhex(text)
    try:
        key = load_pem_public_key(text.encode())
    except ValueError as error:
        raise CliError("the file of --key has no public key") from error
    if not isinstance(key, Ed25519PublicKey):
        raise CliError("the key of --key is not of the kind Ed25519")
    return key.public_bytes_raw()


def _verify_file(exported: Path, heads_file: Path | None, key_text: str | None) -> Any:
    # Imported here: help and listing do not need cryptography.
    from parley.audit_log import AuditVerifier, read_heads
    from parley.audit_log.export import decode_line

    verifier = AuditVerifier(
        heads=() if heads_file is None else read_heads(heads_file, _warn),
        public_key=None if key_text is None else _public_key(key_text),
    )
    with exported.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                verifier.read((decode_line(line),))
            except ValueError as error:
                raise CliError(f"line {number} of {exported} is no entry: {error}") from error
    found = verifier.finish()
    if not found.entries and found.is_intact:
        # An empty log has not even the entry of its export.
        raise CliError(f"{exported} has no entries: there is nothing to verify")
    checkpoint = found.checkpoint
    return {
        # Anyone can sign a checkpoint with a key of their own.
        "is_intact": found.is_intact and (checkpoint is None or key_text is not None),
        "entries": found.entries,
        "last_seq": found.last_seq,
        "head_hash": found.head_hash.hex(),
        "signed_seq": found.signed_seq,
        "unsealed": found.unsealed,
        "checkpoint_seq": 0 if checkpoint is None else checkpoint.seq,
        "checkpoint_key": "" if checkpoint is None else checkpoint.public_key.hex(),
        "problems": [
            {"kind": each.kind.value, "seq": each.seq, "description": each.description}
            for each in found.problems
        ],
    }


def _warn(text: str) -> None:
    click.echo(text, err=True)


def _print_verification(found: Any, as_json: bool) -> int:
    if as_json:
        print_json(found, as_ascii=True)
        return INTACT if found["is_intact"] else FOUND
    for problem in found["problems"]:
        click.echo(f"line {problem['seq']}: {problem['kind']}: {problem['description']}")
    if found["is_intact"]:
        click.echo(f"The audit log is intact: {found['entries']} entries.")
    elif not found["problems"]:
        click.echo(
            f"The log begins behind a checkpoint that the key {found['checkpoint_key']} signed. "
            "It is intact only if that is the key of the gateway: give that one with --key."
        )
    if found["checkpoint_seq"]:
        click.echo(
            f"It was verified from line {found['checkpoint_seq'] + 1} on: the lines before were "
            "pruned, and a signed checkpoint names the last of them.",
            err=True,
        )
    signed = found["signed_seq"]
    click.echo(
        f"The last line is {found['last_seq']} with hash {found['head_hash']}; "
        + (f"signed up to line {signed}." if signed else "no line was compared with a signature."),
        err=True,
    )
    return INTACT if found["is_intact"] else FOUND
