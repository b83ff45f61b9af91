"""Rotates keys while an installation runs, in three stages.

1. Every process can read the new keys; the old ones are in use.
2. The new keys are in use; the old ones can be read.
3. The old keys are gone.

Between the stages the command waits until every process reports that it may go on. Each stage may
be interrupted anywhere, and is repeated then: its steps leave alone what is done already.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from parley.cli.errors import CliError
from parley.cli.home.layout import Home
from parley.cli.keys.plan import Rotation, Stage
from parley.cli.keys.processes import Processes, ProcessKeys
from parley.cli.keys.signing import (
    authority_of,
    believe_both,
    believe_new_authority,
    retire_old_keys,
    signing_key_ids,
    trust_new_keys,
    use_new_authority,
    use_new_keys,
)
from parley.clock import Clock
from parley.identity import ServiceName, TrustFile
from parley.secrets import Keyring

LOOK_S = 1.0
#: Processes read the trust file again for an unknown key at most once a second.
TRUSTED_S = 2.0


class KeyKind(StrEnum):
    """The keys that can be rotated."""

    MASTER = "master"
    SIGNING = "signing"
    CERTIFICATES = "certificates"


@dataclass(frozen=True, slots=True)
class Overlap:
    """How long old keys are accepted.

    Attributes:
        every_key_s: The seconds after which no value and no call needs an old key.
        service_tokens_s: The seconds for which service tokens of the gateway's old key are good.
        wait_s: How long the command waits for processes before it gives up.
    """

    every_key_s: float
    service_tokens_s: float
    wait_s: float


def begin(home: Home, kinds: Iterable[KeyKind], now: datetime) -> Rotation:
    """Return the rotation that was interrupted, or plan one."""
    found = Rotation.load(home.rotation_file)
    if found is not None:
        return found
    kinds = frozenset(kinds)
    master = Keyring.load(home.master_key_file).keys if KeyKind.MASTER in kinds else ()
    planned = Rotation(
        stage=Stage.BEGUN,
        changed_at=now,
        master_key_ids=tuple(key.id for key in master),
        signing_key_ids=signing_key_ids(home) if KeyKind.SIGNING in kinds else {},
        authority=authority_of(home) if KeyKind.CERTIFICATES in kinds else "",
    )
    planned.save(home.rotation_file)
    return planned


class KeyRotator:
    """Takes a rotation from stage to stage.

    Args:
        home: The home with the keys.
        processes: The running processes; None if none is known.
        clock: The clock.
        overlap: How long old keys are accepted.
        say: Is called with a line before each change of a file, and when what is waited for
            changes.
    """

    def __init__(
        self,
        home: Home,
        processes: Processes | None,
        clock: Clock,
        overlap: Overlap,
        say: Callable[[str], None],
    ) -> None:
        self._home = home
        self._processes = processes
        self._clock = clock
        self._overlap = overlap
        self._say = say

    async def advance(self, rotation: Rotation) -> Rotation | None:
        """Do the next stage when the processes are ready for it; return None after the last.

        Raises:
            CliError: Processes do not get ready, or values cannot be decrypted.
        """
        match rotation.stage:
            case Stage.BEGUN:
                self._make_known(rotation)
                return self._reached(rotation, Stage.KNOWN)
            case Stage.KNOWN:
                await self._until_ready(rotation, lambda found: self._unaware(rotation, found))
                self._use(rotation)
                return self._reached(rotation, Stage.USED)
            case Stage.USED:
                self._retire(rotation)
                await self._until_ready(rotation, lambda found: self._needing(rotation, found))
                self._remove(rotation)
                return None

    def _reached(self, rotation: Rotation, stage: Stage) -> Rotation:
        reached = rotation.at(stage, self._clock.now())
        reached.save(self._home.rotation_file)
        return reached

    def _make_known(self, rotation: Rotation) -> None:
        home, old = self._home, rotation.master_key_ids
        if old:
            keyring = Keyring.load(home.master_key_file)
            if all(key.id in old for key in keyring.keys):
                self._say("making a new master key")
                keyring.with_readable_key().save(home.master_key_file)
        if rotation.signing_key_ids:
            self._say("making and trusting new signing keys")
            trust_new_keys(home, rotation.signing_key_ids)
        if rotation.authority:
            self._say("making a new certificate authority, which is believed besides the old one")
            believe_both(home, rotation.authority, self._clock)

    def _use(self, rotation: Rotation) -> None:
        home = self._home
        if rotation.master_key_ids:
            keyring = Keyring.load(home.master_key_file)
            if keyring.writing_key.id in rotation.master_key_ids:
                self._say(f"encrypting with the new master key {keyring.keys[-1].id}")
                keyring.with_newest_first().save(home.master_key_file)
        if rotation.signing_key_ids:
            self._say("signing with the new keys")
            use_new_keys(home, rotation.signing_key_ids)
        if rotation.authority:
            self._say("issuing certificates by the new authority")
            use_new_authority(home, rotation.authority, self._clock)

    def _retire(self, rotation: Rotation) -> None:
        ends = dict.fromkeys(
            rotation.signing_key_ids,
            rotation.changed_at + timedelta(seconds=self._overlap.every_key_s),
        )
        if ServiceName.GATEWAY in ends:
            longest_s = max(self._overlap.every_key_s, self._overlap.service_tokens_s)
            ends[ServiceName.GATEWAY] = rotation.changed_at + timedelta(seconds=longest_s)
        if ends:
            self._say("retiring the old signing keys")
            retire_old_keys(self._home, rotation.signing_key_ids, ends, self._clock.now())

    def _remove(self, rotation: Rotation) -> None:
        home = self._home
        if rotation.master_key_ids:
            keyring = Keyring.load(home.master_key_file)
            if len(keyring.keys) > 1:
                self._say(f"removing the old master keys, which {home.former_master_key_file} has")
                keyring.save(home.former_master_key_file)
                keyring.without_old_keys().save(home.master_key_file)
        if rotation.authority:
            self._say("believing only the new certificate authority")
            believe_new_authority(home)
        self._say("removing what is over")
        if home.trust_file.exists():
            TrustFile(home.trust_file).forget_retired(now=self._clock.now())
        home.rotation_file.unlink()

    async def _until_ready(
        self, rotation: Rotation, missing: Callable[[Sequence[ProcessKeys]], tuple[str, ...]]
    ) -> None:
        """Wait until nothing is missing of any process."""
        if self._processes is None:
            if rotation.stage is Stage.USED:
                raise CliError(
                    "no process is known that could say whether it needs the old keys: start the "
                    "stack, or name processes with --process, and run this again"
                )
            return
        told: tuple[str, ...] = ()
        given_up_at_s = self._clock.monotonic() + self._overlap.wait_s
        while waiting_for := missing(await self._processes.keys()):
            if waiting_for != told:
                self._say(f"waiting: {', '.join(waiting_for)}")
                told = waiting_for
            if self._clock.monotonic() >= given_up_at_s:
                raise CliError(f"still waiting: {', '.join(waiting_for)}; run this again to go on")
            await self._clock.sleep(LOOK_S)

    def _unaware(self, rotation: Rotation, found: Sequence[ProcessKeys]) -> tuple[str, ...]:
        """Return what keeps the new keys from being used."""
        missing = [f"{each.name} does not answer" for each in found if not each.answers]
        if rotation.master_key_ids:
            newest = Keyring.load(self._home.master_key_file).keys
            ids = {key.id for key in newest} - set(rotation.master_key_ids)
            missing += [
                f"{each.name} has not read the new master key"
                for each in found
                if each.master is not None and not ids <= set(each.master.key_ids)
            ]
        if rotation.authority:
            missing += [
                f"{each.name} has not read the new authority"
                for each in found
                if each.authorities and set(each.authorities) == {rotation.authority}
            ]
        if rotation.signing_key_ids and self._age_s(rotation) < TRUSTED_S:
            missing.append("new signing keys have to be read")
        return tuple(missing)

    def _needing(self, rotation: Rotation, found: Sequence[ProcessKeys]) -> tuple[str, ...]:
        """Return what keeps the old keys from being removed."""
        missing = [f"{each.name} does not answer" for each in found if not each.answers]
        old_kids = set(rotation.signing_key_ids.values())
        missing += [
            f"{each.name} signs with its old key"
            for each in found
            if each.signing_key_id in old_kids
        ]
        if rotation.master_key_ids:
            missing += self._unsettled(found)
        left_s = self._overlap.every_key_s - self._age_s(rotation)
        if left_s > 0:
            missing.append(f"old keys are accepted until {self._end(rotation):%H:%M:%S} UTC")
        return tuple(missing)

    def _unsettled(self, found: Sequence[ProcessKeys]) -> list[str]:
        newest = Keyring.load(self._home.master_key_file).writing_key.id
        missing = []
        for each in found:
            if each.master is None:
                continue
            if each.master.damaged:
                raise CliError(
                    f"{each.name} cannot decrypt {', '.join(each.master.damaged)}: enter these "
                    "values again or delete them, then run this again to go on"
                )
            count = sum(n for key_id, n in each.master.values.items() if key_id != newest)
            if count:
                missing.append(f"{each.name} has {count} value{'s'[: count > 1]} of old keys")
            elif each.master.settled_key_id != newest:
                missing.append(f"{each.name} has not looked through its values yet")
        return missing

    def _age_s(self, rotation: Rotation) -> float:
        return (self._clock.now() - rotation.changed_at).total_seconds()

    def _end(self, rotation: Rotation) -> datetime:
        return rotation.changed_at + timedelta(seconds=self._overlap.every_key_s)


def summary_of(
    rotation: Rotation, overlap: Overlap, *, master_key_id: str, issue: str
) -> tuple[str, str]:
    """Return which keys were replaced, and what holds of the old ones.

    Args:
        rotation: The rotation in its last stage.
        overlap: How long old keys are accepted.
        master_key_id: The master key that encrypts now.
        issue: The command that issues service tokens.
    """
    services = ", ".join(sorted(rotation.signing_key_ids))
    replaced = [
        *([f"the master key (now {master_key_id})"] if rotation.master_key_ids else []),
        *([f"the signing keys of {services}"] if services else []),
        *(["the certificate authority"] if rotation.authority else []),
    ]
    first = f"Replaced {', '.join(replaced)}." if replaced else "There was no key to replace."
    tokens_s = overlap.service_tokens_s
    if ServiceName.GATEWAY in rotation.signing_key_ids and tokens_s > overlap.every_key_s:
        until = rotation.changed_at + timedelta(seconds=tokens_s)
        return first, (
            f"The old keys are refused, except for service tokens until {until:%Y-%m-%d %H:%M} "
            f"UTC: issue new ones with `{issue}`."
        )
    return first, "The old keys are refused."
