"""An exported audit log is verified with the key that the operator names."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from parley.audit_log import append_head, sign_checkpoint
from parley.audit_log.export import encode_line
from parley.cli.accounts.audit_log import log as command
from parley.cli.errors import CliError
from parley.identity import SigningKey
from unit.parley.audit_log.test_verification import BEGAN_AT, KEY, Lines, head_of
from unit.parley.audit_log.test_verification import log as log_of

OTHER = SigningKey.generate()


def verified(directory: Path, lines: Lines, *options: str) -> tuple[int, str]:
    """Run the command over an export and the file of heads beside it."""
    exported = directory / "log.jsonl"
    exported.write_bytes(b"".join(map(encode_line, lines)))
    heads = ("--heads", str(directory / "heads.jsonl"))
    found = CliRunner().invoke(
        command, ["--verify", "--file", str(exported), *heads, *options], standalone_mode=False
    )
    assert found.exception is None, found.exception
    return found.return_value, found.output


def checkpoint(directory: Path, lines: Lines, seq: int, key: SigningKey) -> None:
    signed = sign_checkpoint(seq, lines[seq - 1].entry.hash, BEGAN_AT, key)
    append_head(directory / "heads.jsonl", signed)


def test_a_checkpoint_of_an_unknown_key_does_not_make_a_log_intact(tmp_path: Path) -> None:
    lines = log_of(5)
    checkpoint(tmp_path, lines, 3, OTHER)
    code, printed = verified(tmp_path, lines[3:])
    refused, reason = verified(tmp_path, lines[3:], "--key", KEY.public.hex())

    assert (code, "is intact:" in printed) == (1, False)
    assert f"the key {OTHER.public.hex()} signed" in printed
    assert (refused, "head_forged" in reason, "removed" in reason) == (1, True, True)


@pytest.mark.parametrize("kind", ["digits", "file of digits", "file of PEM"])
def test_a_checkpoint_of_the_key_that_is_given_is_accepted(tmp_path: Path, kind: str) -> None:
    lines, file = log_of(5), tmp_path / "audit.pub"
    checkpoint(tmp_path, lines, 3, KEY)
    append_head(tmp_path / "heads.jsonl", head_of(lines, 5))
    public = KEY.private.public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    file.write_bytes(pem if kind == "file of PEM" else KEY.public.hex().encode() + b"\n")
    given = KEY.public.hex() if kind == "digits" else str(file)
    code, printed = verified(tmp_path, lines[3:], "--key", given)

    assert (code, "The audit log is intact: 2 entries." in printed) == (0, True)


def test_a_checkpoint_of_another_key_than_the_heads_is_refused(tmp_path: Path) -> None:
    lines = log_of(5)
    append_head(tmp_path / "heads.jsonl", head_of(lines, 5))
    checkpoint(tmp_path, lines, 3, OTHER)
    code, printed = verified(tmp_path, lines[3:])

    assert (code, "line 3: head_forged" in printed, "line 1: removed" in printed) == (1, True, True)


def test_a_log_from_its_first_line_on_needs_no_key(tmp_path: Path) -> None:
    lines = log_of(5)
    append_head(tmp_path / "heads.jsonl", head_of(lines, 5))

    assert verified(tmp_path, lines)[0] == 0


@pytest.mark.parametrize("has_heads", [True, False])
def test_an_export_without_signed_heads_is_not_called_checked_by_signature(
    tmp_path: Path, has_heads: bool
) -> None:
    lines, exported = log_of(3), tmp_path / "log.jsonl"
    exported.write_bytes(b"".join(map(encode_line, lines)))
    append_head(tmp_path / "heads.jsonl", head_of(lines, 3))
    heads = ("--heads", str(tmp_path / "heads.jsonl")) if has_heads else ()
    found = CliRunner().invoke(
        command, ["--verify", "--file", str(exported), *heads], standalone_mode=False
    )
    assert found.return_value == 0
    assert ("Nothing was checked against a signature" in found.stderr) is not has_heads
    assert ("no line was compared with a signature" in found.stderr) is not has_heads


def test_a_file_without_entries_is_no_intact_log(tmp_path: Path) -> None:
    exported = tmp_path / "log.jsonl"
    exported.write_bytes(b"")
    found = CliRunner().invoke(
        command, ["--verify", "--file", str(exported)], standalone_mode=False
    )

    assert isinstance(found.exception, CliError)
    assert "is intact" not in found.output
