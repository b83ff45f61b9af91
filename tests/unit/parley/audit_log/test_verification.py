"""Whatever is done to the lines of an audit log, verification finds it and says what it was."""

import resource
import signal
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from parley.audit_log import (
    GENESIS,
    AuditAction,
    AuditedLine,
    AuditEntry,
    AuditVerification,
    AuditVerifier,
    address_digest,
    append_head,
    pseudonym_of,
    read_heads,
    seal_key_of,
    sign_checkpoint,
    sign_head,
)
from parley.audit_log.chain import hashed
from parley.audit_log.heads import SignedHead
from parley.audit_log.verification import Person
from parley.identity import SigningKey

KEY = SigningKey.generate()
SEAL_KEY = seal_key_of(KEY)
ADA = Person("00000000-0000-0000-0000-00000000000a", b"a" * 32)
BOB = Person("00000000-0000-0000-0000-00000000000b", b"b" * 32)
BEGAN_AT = datetime(2026, 1, 1, tzinfo=UTC)

Lines = tuple[AuditedLine, ...]


def line(
    seq: int,
    previous_hash: bytes,
    action: AuditAction = AuditAction.GROUP_MEMBER_ADDED,
    seal_key: bytes | None = SEAL_KEY,
) -> AuditedLine:
    entry = AuditEntry(
        seq=seq,
        id=f"00000000-0000-0000-0000-{seq:012}",
        at=BEGAN_AT + timedelta(seconds=seq),
        service="gateway",
        action=action,
        outcome="done",
        object_id=f"object-{seq}",
        actor=pseudonym_of(ADA.user_id, ADA.salt),
        subject=pseudonym_of(BOB.user_id, BOB.salt),
        details={"number": str(seq)},
        address=address_digest("192.0.2.1", b"s" * 32),
        previous_hash=previous_hash,
    )
    return AuditedLine(hashed(entry, seal_key), ADA, BOB, "192.0.2.1", b"s" * 32)


def log(count: int, last: AuditAction = AuditAction.GROUP_MEMBER_ADDED) -> Lines:
    lines: list[AuditedLine] = []
    for seq in range(1, count + 1):
        before = lines[-1].entry.hash if lines else GENESIS
        action = last if seq == count else AuditAction.GROUP_MEMBER_ADDED
        lines.append(line(seq, before, action))
    return tuple(lines)


def head_of(lines: Lines, seq: int, key: SigningKey = KEY) -> SignedHead:
    return sign_head(seq, lines[seq - 1].entry.hash, BEGAN_AT, key)


def verified(lines: Lines, *heads: SignedHead) -> AuditVerification:
    verifier = AuditVerifier(heads=heads, public_key=KEY.public, seal_key=SEAL_KEY)
    verifier.read(lines)
    return verifier.finish()


def found(lines: Lines, *heads: SignedHead) -> list[tuple[str, int]]:
    return [(each.kind.value, each.seq) for each in verified(lines, *heads).problems]


def changed(audited: AuditedLine, **fields: object) -> AuditedLine:
    return replace(audited, entry=replace(audited.entry, **fields))  # type: ignore[arg-type]


def renumbered(lines: Lines, first: int) -> Lines:
    return tuple(changed(each, seq=number) for number, each in enumerate(lines, start=first))


def test_an_untouched_log_is_intact() -> None:
    lines = log(5)

    assert verified(lines, head_of(lines, 2), head_of(lines, 4)) == AuditVerification(
        entries=5,
        last_seq=5,
        head_hash=lines[-1].entry.hash,
        signed_seq=4,
        unsealed=0,
        problems=(),
    )


@pytest.mark.parametrize(
    "field", ["id", "at", "service", "action", "outcome", "object_id", "actor", "details"]
)
def test_a_changed_field_of_a_line_is_found(field: str) -> None:
    lines = log(3)
    others: dict[str, object] = {"at": BEGAN_AT, "actor": None, "details": {"number": "7"}}
    tampered = changed(lines[1], **{field: others.get(field, "other")})

    assert found((lines[0], tampered, lines[2])) == [("changed", 2)]


@pytest.mark.parametrize(
    ("tamper", "expected"),
    [
        pytest.param(
            lambda lines: (lines[0], *lines[2:]), [("removed", 2)], id="a line is removed"
        ),
        pytest.param(
            lambda lines: (lines[0], *renumbered(lines[2:], 2)),
            [("reordered", 2), ("reordered", 3), ("truncated", 4)],
            id="a line is removed and the rest renumbered",
        ),
        pytest.param(
            lambda lines: (*lines[:2], line(3, lines[1].entry.hash), *renumbered(lines[2:], 4)),
            [("reordered", 4), ("rewritten", 4), ("reordered", 5)],
            id="a line of before is inserted again",
        ),
        pytest.param(
            lambda lines: (lines[0], lines[2], lines[1], lines[3]),
            [("removed", 2), ("reordered", 2)],
            id="two lines are exported in another order",
        ),
        pytest.param(
            lambda lines: (
                lines[0],
                changed(lines[2], seq=2),
                changed(lines[1], seq=3),
                lines[3],
            ),
            [("reordered", 2), ("reordered", 3)],
            id="two lines change places",
        ),
        pytest.param(lambda lines: lines[:2], [("truncated", 3)], id="the end is cut off"),
        pytest.param(lambda lines: (), [("truncated", 1)], id="all is deleted"),
    ],
)
def test_what_was_done_to_lines_is_named(
    tamper: Callable[[Lines], Lines], expected: list[tuple[str, int]]
) -> None:
    lines = log(4)

    assert found(tamper(lines), head_of(lines, 4)) == expected


def test_a_line_that_no_gateway_wrote_is_found_though_its_hash_is_right() -> None:
    lines = log(3)
    forged = line(4, lines[-1].entry.hash, seal_key=b"another key of 32 bytes.........")
    unsealed = line(4, lines[-1].entry.hash, seal_key=None)

    assert found((*lines, forged)) == [("inserted", 4)]
    assert found((*lines, unsealed)) == [("inserted", 4)]


def test_a_log_that_was_written_anew_contradicts_a_signed_head() -> None:
    lines = log(3)
    anew = log(3, last=AuditAction.GROUP_DELETED)

    assert found(anew, head_of(lines, 3)) == [("rewritten", 3)]


def test_a_head_of_another_key_is_found() -> None:
    lines = log(2)

    assert found(lines, head_of(lines, 2, SigningKey.generate())) == [("head_forged", 2)]


def test_people_and_addresses_that_were_exchanged_are_found() -> None:
    lines = log(3)

    assert found((lines[0], replace(lines[1], actor=BOB), lines[2])) == [("person_changed", 2)]
    assert found((lines[0], replace(lines[1], address="192.0.2.9"), lines[2])) == [
        ("address_changed", 2)
    ]


def test_a_person_is_missing_only_if_a_later_line_deletes_them() -> None:
    kept, deleted = log(3), log(3, last=AuditAction.USER_DELETED)

    assert found(tuple(replace(each, subject=None) for each in kept)) == [
        ("person_removed", 1),
        ("person_removed", 2),
        ("person_removed", 3),
    ]
    assert found(tuple(replace(each, subject=None) for each in deleted)) == []


def test_lines_that_were_pruned_while_they_were_read_are_not_removed() -> None:
    lines = log(6)
    at_four = sign_checkpoint(4, lines[3].entry.hash, BEGAN_AT, KEY)
    other = sign_checkpoint(4, lines[2].entry.hash, BEGAN_AT, KEY)
    pruned = (lines[0], *lines[4:])

    assert verified(pruned, head_of(lines, 3), at_four).problems == ()
    assert verified(pruned, at_four).checkpoint == at_four
    assert found(pruned) == [("removed", 2)]
    assert found(pruned, other) == [("removed", 2)]
    assert found((lines[0], lines[5]), at_four) == [("removed", 2)]


def test_heads_are_appended_to_their_file_and_read_again(tmp_path: Path) -> None:
    lines, path = log(2), tmp_path / "heads.jsonl"
    heads = (head_of(lines, 1), head_of(lines, 2))

    assert read_heads(path) == ()
    for head in heads:
        append_head(path, head)
    assert read_heads(path) == heads
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_damaged_line_of_the_file_of_heads_is_reported_and_skipped(tmp_path: Path) -> None:
    lines, path = log(2), tmp_path / "heads.jsonl"
    append_head(path, head_of(lines, 1))
    with path.open("ab") as file:
        file.write(b'{"seq": 2, "ha')
    append_head(path, head_of(lines, 2))
    reported: list[str] = []

    assert read_heads(path, reported.append) == (head_of(lines, 1), head_of(lines, 2))
    assert [each.split(":")[0] for each in reported] == [
        "line 2 of the signed heads is damaged and skipped"
    ]


def test_a_head_of_which_the_disk_takes_only_a_part_is_an_error(tmp_path: Path) -> None:
    lines, path = log(2), tmp_path / "heads.jsonl"
    append_head(path, head_of(lines, 1))
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, limits[1]))
    try:
        with pytest.raises(OSError, match=r"10 of .* bytes were written"):
            append_head(path, head_of(lines, 2))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    append_head(path, head_of(lines, 2))

    assert read_heads(path) == (head_of(lines, 1), head_of(lines, 2))
