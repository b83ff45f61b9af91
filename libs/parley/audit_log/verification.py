"""Verification of the chain: every changed, removed, inserted or moved line, and a missing end.

Lines are given in the order in which they are stored or were exported. What is kept of a good line
is its hash only if a signed head names it, so that a long log needs little memory. If the first
lines are missing, a signed checkpoint has to name the last one of them. Lines may be pruned while
they are read, so the same is true for lines that are missing behind some first ones.
"""

import hmac
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from parley.audit_log.chain import (
    ACTOR_OBJECT,
    GENESIS,
    SUBJECT_OBJECT,
    AuditEntry,
    address_digest,
    entry_hash,
    pseudonym_of,
    seal_of,
)
from parley.audit_log.event import AuditAction
from parley.audit_log.heads import SignedHead

PROBLEMS_MAX: Final = 200


class AuditProblemKind(StrEnum):
    """What is wrong with a line."""

    CHANGED = "changed"
    REMOVED = "removed"
    INSERTED = "inserted"
    REORDERED = "reordered"
    TRUNCATED = "truncated"
    REWRITTEN = "rewritten"
    PERSON_CHANGED = "person_changed"
    PERSON_REMOVED = "person_removed"
    ADDRESS_CHANGED = "address_changed"
    ADDRESS_REMOVED = "address_removed"
    HEAD_FORGED = "head_forged"


@dataclass(frozen=True, slots=True)
class AuditProblem:
    """One finding: the number of the line, and what it means."""

    kind: AuditProblemKind
    seq: int
    description: str


@dataclass(frozen=True, slots=True)
class Person:
    """A user as they are named beside the chain."""

    user_id: str
    salt: bytes


@dataclass(frozen=True, slots=True)
class AuditedLine:
    """An entry with what is stored of its people beside the chain; None for what was erased."""

    entry: AuditEntry
    actor: Person | None = None
    subject: Person | None = None
    address: str | None = None
    address_salt: bytes | None = None

    @property
    def object_id(self) -> str:
        """The id of what it was done to; empty if that is a user who was erased."""
        named = self.entry.object_id
        if named not in (SUBJECT_OBJECT, ACTOR_OBJECT):
            return named
        person = self.subject if named == SUBJECT_OBJECT else self.actor
        return "" if person is None else person.user_id


@dataclass(frozen=True, slots=True)
class AuditVerification:
    """The result.

    Attributes:
        entries: How many lines were read.
        last_seq: The number of the last line.
        head_hash: Its hash.
        signed_seq: The number of the last line that a good signed head covers.
        unsealed: How many lines have no seal, because there was no key.
        problems: All findings, the first ones if there are very many.
        checkpoint: What allows the lines before the first to be missing; None if none are.
    """

    entries: int
    last_seq: int
    head_hash: bytes
    signed_seq: int
    unsealed: int
    problems: tuple[AuditProblem, ...]
    checkpoint: SignedHead | None = None

    @property
    def is_intact(self) -> bool:
        """Whether nothing was found."""
        return not self.problems


@dataclass(slots=True)
class _Missing:
    """Personal data that must have been erased by a later entry."""

    seq: int
    kind: AuditProblemKind


@dataclass(slots=True)
class AuditVerifier:
    """Verifies lines one after another.

    Attributes:
        heads: The signed heads and checkpoints, in any order.
        public_key: The key that must have signed them; None accepts that of each head, but no
            checkpoint of another key than that of the heads.
        seal_key: The key of the seals; None leaves them unchecked.
        stored_head: The number and hash that the database names as its last; None in an export.
    """

    heads: tuple[SignedHead, ...] = ()
    public_key: bytes | None = None
    seal_key: bytes | None = None
    stored_head: tuple[int, bytes] | None = None
    _problems: list[AuditProblem] = field(default_factory=list)
    _broken: list[AuditEntry] = field(default_factory=list)
    _missing: dict[bytes, list[_Missing]] = field(default_factory=dict)
    _erased: set[bytes] = field(default_factory=set)
    _signed: dict[int, list[SignedHead]] = field(default_factory=dict)
    _checkpoints: dict[int, SignedHead] = field(default_factory=dict)
    _checkpoint: SignedHead | None = None
    _signed_seq: int = 0
    _entries: int = 0
    _unsealed: int = 0
    _is_sealed: bool = False
    _last_seq: int = 0
    _last_hash: bytes = GENESIS
    _is_last_broken: bool = False

    def __post_init__(self) -> None:
        keys = {head.public_key for head in self.heads if not head.is_checkpoint}
        for head in self.heads:
            is_of_other_key = (
                self.public_key is None and head.is_checkpoint and (keys - {head.public_key})
            )
            if is_of_other_key or not head.is_signed_by(self.public_key or head.public_key):
                self._found(
                    AuditProblemKind.HEAD_FORGED, head.seq, "a head has not the right signature"
                )
                continue
            self._signed.setdefault(head.seq, []).append(head)
            if head.is_checkpoint:
                self._checkpoints[head.seq] = head

    def read(self, lines: Iterable[AuditedLine]) -> None:
        """Verify the next lines."""
        for line in lines:
            self._read(line)

    def _read(self, line: AuditedLine) -> None:
        entry = line.entry
        if not self._entries:
            self._begin_behind(entry.seq - 1)
        self._entries += 1
        expected_hash = entry_hash(entry)
        is_changed = expected_hash != entry.hash
        if is_changed:
            if len(self._broken) < PROBLEMS_MAX:
                self._broken.append(entry)
        else:
            self._check_seal(entry)
        self._skip_pruned(entry)
        self._check_order(entry, is_changed)
        self._check_heads(entry)
        self._check_people(line)
        if entry.action == AuditAction.USER_DELETED and entry.subject is not None:
            self._erased.add(entry.subject)
        if entry.seq > self._last_seq:
            self._last_seq, self._last_hash = entry.seq, entry.hash
        self._is_last_broken = is_changed

    def _begin_behind(self, seq: int) -> None:
        """Begin where the newest checkpoint before the first line says that lines were pruned."""
        known = max((each for each in self._checkpoints if each <= seq), default=None)
        if known is not None:
            self._go_on_behind(self._checkpoints[known])

    def _go_on_behind(self, checkpoint: SignedHead) -> None:
        self._checkpoint = checkpoint
        self._last_seq, self._last_hash = checkpoint.seq, checkpoint.hash
        for head in self._signed.pop(checkpoint.seq, ()):
            self._compare(head, checkpoint.seq, checkpoint.hash)

    def _skip_pruned(self, entry: AuditEntry) -> None:
        """Go on behind a checkpoint that names the line before this one, if there is one."""
        checkpoint = self._checkpoints.get(entry.seq - 1)
        is_gap = entry.seq > self._last_seq + 1
        if is_gap and checkpoint is not None and checkpoint.hash == entry.previous_hash:
            self._go_on_behind(checkpoint)

    def _check_order(self, entry: AuditEntry, is_changed: bool) -> None:
        if entry.seq <= self._last_seq:
            self._found(
                AuditProblemKind.REORDERED, entry.seq, f"it stands behind line {self._last_seq}"
            )
        elif entry.seq > self._last_seq + 1:
            first, last = self._last_seq + 1, entry.seq - 1
            missing = f"line {first} is" if first == last else f"lines {first} to {last} are"
            self._found(AuditProblemKind.REMOVED, first, f"{missing} missing")
        elif entry.previous_hash != self._last_hash and not (is_changed or self._is_last_broken):
            self._found(
                AuditProblemKind.REWRITTEN,
                entry.seq,
                f"it does not follow the line {self._last_seq} that is there",
            )

    def _check_seal(self, entry: AuditEntry) -> None:
        if entry.seal is None:
            self._unsealed += 1
            if self._is_sealed:
                self._found(AuditProblemKind.INSERTED, entry.seq, "no gateway wrote it: no seal")
            return
        self._is_sealed = True
        if self.seal_key is not None and not hmac.compare_digest(
            entry.seal, seal_of(self.seal_key, entry.hash)
        ):
            self._found(AuditProblemKind.INSERTED, entry.seq, "no gateway wrote it: wrong seal")

    def _check_heads(self, entry: AuditEntry) -> None:
        for head in self._signed.pop(entry.seq, ()):
            self._compare(head, entry.seq, entry.hash)

    def _compare(self, head: SignedHead, seq: int, found_hash: bytes) -> None:
        if head.hash == found_hash:
            self._signed_seq = max(self._signed_seq, head.seq)
        else:
            self._found(AuditProblemKind.REWRITTEN, seq, "a signed head names another hash")

    def _check_people(self, line: AuditedLine) -> None:
        entry = line.entry
        for pseudonym, person in ((entry.actor, line.actor), (entry.subject, line.subject)):
            if pseudonym is None:
                continue
            if person is None:
                self._missed(pseudonym, entry.seq, AuditProblemKind.PERSON_REMOVED)
            elif pseudonym_of(person.user_id, person.salt) != pseudonym:
                self._found(AuditProblemKind.PERSON_CHANGED, entry.seq, "its person is another one")
        if entry.address is None:
            return
        if line.address is None or line.address_salt is None:
            person_of_address = entry.actor or entry.subject or b""
            self._missed(person_of_address, entry.seq, AuditProblemKind.ADDRESS_REMOVED)
        elif address_digest(line.address, line.address_salt) != entry.address:
            self._found(AuditProblemKind.ADDRESS_CHANGED, entry.seq, "its address is another one")

    def _missed(self, pseudonym: bytes, seq: int, kind: AuditProblemKind) -> None:
        found = self._missing.setdefault(pseudonym, [])
        if len(found) < PROBLEMS_MAX:
            found.append(_Missing(seq, kind))

    def _found(self, kind: AuditProblemKind, seq: int, description: str) -> None:
        if len(self._problems) < PROBLEMS_MAX:
            self._problems.append(AuditProblem(kind, seq, description))

    def finish(self) -> AuditVerification:
        """Return what was found, with what only the end of the log shows."""
        self._name_broken()
        for pseudonym, missing in self._missing.items():
            if pseudonym not in self._erased:
                for each in missing:
                    self._found(each.kind, each.seq, "its user was removed without an entry for it")
        end = max((*self._signed, self.stored_head[0] if self.stored_head else 0, 0))
        if end > self._last_seq:
            self._found(
                AuditProblemKind.TRUNCATED,
                self._last_seq + 1,
                f"the log ends with line {self._last_seq}, and there was a line {end}",
            )
        elif self.stored_head is not None and self.stored_head != (
            self._last_seq,
            self._last_hash,
        ):
            self._found(
                AuditProblemKind.REWRITTEN, self._last_seq, "the stored head names another hash"
            )
        return AuditVerification(
            self._entries,
            self._last_seq,
            self._last_hash,
            self._signed_seq,
            self._unsealed,
            tuple(sorted(self._problems, key=lambda each: (each.seq, each.kind))),
            self._checkpoint,
        )

    def _name_broken(self) -> None:
        """Tell lines whose content changed from those that were moved to another number."""
        numbers = sorted({each.seq for each in self._broken})
        for entry in self._broken:
            candidates = {*numbers, entry.seq - 1, entry.seq + 1} - {entry.seq}
            came_from = next(
                (
                    seq
                    for seq in sorted(candidates)
                    if entry_hash(replace(entry, seq=seq)) == entry.hash
                ),
                None,
            )
            if came_from is None:
                self._found(
                    AuditProblemKind.CHANGED, entry.seq, "its content does not match its hash"
                )
            else:
                self._found(
                    AuditProblemKind.REORDERED, entry.seq, f"it was line {came_from} before"
                )
