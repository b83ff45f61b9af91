"""A rotation that is killed before any of its steps is finished by the next call of the command."""

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.x509 import load_pem_x509_certificate

from parley.cli.errors import CliError
from parley.cli.home.credentials import prepare_secrets
from parley.cli.home.layout import Home
from parley.cli.keys.plan import Rotation
from parley.cli.keys.processes import MasterKeyUse, ProcessKeys
from parley.cli.keys.rotation import KeyKind, KeyRotator, Overlap, begin
from parley.cli.keys.signing import authority_of, signing_key_ids
from parley.clock.fake import EPOCH
from parley.identity import (
    CertificateAuthority,
    CertificateFiles,
    CertificateUnreadable,
    ServiceName,
    TrustFile,
)
from parley.identity.certificates import fingerprints_of
from parley.secrets import Keyring

OVERLAP = Overlap(every_key_s=5, service_tokens_s=86_400, wait_s=30)


class Killed(BaseException):
    """The command ends without another word."""


WRITES_LEFT: list[int] = []


def _count_writes(event: str, arguments: object) -> None:
    """Kill at a replacement of a file; Python reports each before it happens."""
    if event == "os.rename" and WRITES_LEFT:
        if WRITES_LEFT[0] == 0:
            raise Killed
        WRITES_LEFT[0] -= 1


sys.addaudithook(_count_writes)


@contextmanager
def killed_after(writes: int) -> Iterator[None]:
    """Kill the command when it replaces one more file than so many."""
    WRITES_LEFT.append(writes)
    try:
        yield
    finally:
        WRITES_LEFT.clear()


class PassingTime:
    """A clock that passes when somebody sleeps."""

    def __init__(self) -> None:
        self.at_s = 0.0

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.at_s)

    def monotonic(self) -> float:
        return self.at_s

    async def sleep(self, delay_s: float) -> None:
        self.at_s += delay_s


class FollowingProcesses:
    """Two processes that read the files of the home when they are asked, and judge them."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self.values = {Keyring.load(home.master_key_file).writing_key.id: 3}
        self.damaged: tuple[str, ...] = ()
        self.is_down = False
        self.certificates: dict[str, CertificateFiles] = {}

    async def keys(self) -> Sequence[ProcessKeys]:
        keyring = Keyring.load(self._home.master_key_file)
        known = {key.id for key in keyring.keys}
        # No process ever meets a value, a call or a certificate that it cannot judge.
        assert set(self.values) <= known
        trusted = {key.kid for key in TrustFile(self._home.trust_file).read()}
        assert set(signing_key_ids(self._home).values()) <= trusted
        # Half of a new certificate is ignored, as processes do that run.
        for name in ("chatd", "gateway"):
            with suppress(CertificateUnreadable):
                self.certificates[name] = CertificateFiles.read(self._home.tls / name)
        files = list(self.certificates.values())
        for each in files:
            assert {leaf_authority(self._home, other) for other in files} <= set(each.authorities)
        # One batch of what is left is encrypted between two answers.
        newest, old = keyring.writing_key.id, [key for key in self.values if key in known]
        left = {key: count - 1 for key, count in self.values.items() if key != newest and count > 1}
        moved = sum(self.values[key] for key in old) - sum(left.values())
        self.values = {**left, newest: moved}
        master = MasterKeyUse(
            tuple(key.id for key in keyring.keys),
            self.values,
            newest if set(self.values) == {newest} else "",
            self.damaged,
        )
        signing = signing_key_ids(self._home)
        return [
            ProcessKeys(
                "chatd-0", not self.is_down, signing["chatd"], master, files[0].authorities
            ),
            ProcessKeys("toolrunner-0", signing_key_id=signing["toolrunner"]),
        ]


def leaf_authority(home: Home, files: CertificateFiles) -> str:
    """Return the fingerprint of the authority that has issued a certificate."""
    leaf = load_pem_x509_certificate(files.certificate_pem)
    for directory in (home.tls, home.keys / "tls-old", home.keys / "tls-next"):
        with suppress(FileNotFoundError, InvalidSignature):
            pem = (directory / "ca.pem").read_bytes()
            leaf.verify_directly_issued_by(load_pem_x509_certificate(pem))
            return fingerprints_of(pem)[0]
    raise AssertionError("no authority of this home has issued it")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home.at(tmp_path)
    home.prepare()
    prepare_secrets(home)
    authority = CertificateAuthority.create(home.tls, clock=PassingTime())
    for service in (ServiceName.CHATD, ServiceName.GATEWAY):
        authority.issue(service).write(home.tls / service)
    # To recognise certificates of the old one when it is gone.
    kept = home.keys / "tls-old"
    kept.mkdir()
    for name in ("ca.pem", "ca-key.pem"):
        (kept / name).write_bytes((home.tls / name).read_bytes())
    return home


class WithoutValues(FollowingProcesses):
    """Another process beside them, which has no values and looks late."""

    async def keys(self) -> Sequence[ProcessKeys]:
        found = await super().keys()
        keyring = Keyring.load(self._home.master_key_file)
        newest, known = keyring.writing_key.id, tuple(key.id for key in keyring.keys)
        looked = MasterKeyUse(known, {}, newest if set(self.values) == {newest} else "")
        return [*found, ProcessKeys("mcpgateway-0", master=looked)]


async def rotate(
    home: Home,
    clock: PassingTime,
    processes: FollowingProcesses,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Rotate all keys."""
    rotator = KeyRotator(home, processes, clock, OVERLAP, say)
    rotation: Rotation | None = begin(home, KeyKind, clock.now())
    while rotation is not None:
        rotation = await rotator.advance(rotation)


def assert_rotated(
    home: Home, before: tuple[Keyring, dict[str, str], str], clock: PassingTime
) -> None:
    keyring, signing, authority = before
    (master,) = Keyring.load(home.master_key_file).keys
    assert master not in keyring.keys
    assert set(Keyring.load(home.former_master_key_file).keys) == {master, *keyring.keys}
    now_signing = signing_key_ids(home)
    assert set(now_signing) == set(signing)
    assert not set(now_signing.values()) & set(signing.values())
    accepted = {
        key.kid for key in TrustFile(home.trust_file).read() if key.is_accepted(clock.now())
    }
    # Service tokens of the gateway's old key have more time.
    assert accepted == {*now_signing.values(), signing["gateway"]}
    assert authority_of(home) != authority
    for service in ("chatd", "gateway"):
        files = CertificateFiles.read(home.tls / service)
        assert files.authorities == (authority_of(home),) == (leaf_authority(home, files),)
    left = {path.name for path in home.keys.iterdir()}
    assert left >= {"trust.json", "tls"}
    assert not {name for name in left if "next" in name or "rotation.json" in name}


async def test_all_keys_are_replaced_while_every_process_can_read_what_there_is(
    home: Home,
) -> None:
    clock = PassingTime()
    before = Keyring.load(home.master_key_file), signing_key_ids(home), authority_of(home)
    await rotate(home, clock, FollowingProcesses(home))
    assert_rotated(home, before, clock)
    assert clock.at_s >= OVERLAP.every_key_s


async def test_a_rotation_killed_before_any_of_its_writes_goes_on_where_it_was(
    home: Home, tmp_path_factory: pytest.TempPathFactory
) -> None:
    before = Keyring.load(home.master_key_file), signing_key_ids(home), authority_of(home)
    for writes in range(100):
        copy = Home.at(tmp_path_factory.mktemp("copy") / "home")
        shutil.copytree(home.root, copy.root)
        clock, processes = PassingTime(), FollowingProcesses(copy)
        try:
            with killed_after(writes):
                await rotate(copy, clock, processes)
            break
        except Killed:
            await rotate(copy, clock, processes)
            assert_rotated(copy, before, clock)
    assert writes > 25  # As many files are replaced.


async def test_only_processes_with_values_of_old_keys_are_said_to_have_some(home: Home) -> None:
    lines: list[str] = []
    await rotate(home, PassingTime(), WithoutValues(home), lines.append)
    told = "\n".join(lines)
    assert "chatd-0 has 1 value of old keys" in told
    assert "mcpgateway-0 has not looked through its values yet" in told
    assert "0 values" not in told


async def test_old_keys_stay_while_a_process_does_not_answer(home: Home) -> None:
    clock, processes = PassingTime(), FollowingProcesses(home)
    before = Keyring.load(home.master_key_file)
    processes.is_down = True
    with pytest.raises(CliError, match="chatd-0 does not answer; run this again"):
        await rotate(home, clock, processes)
    assert Keyring.load(home.master_key_file).writing_key == before.writing_key
    processes.is_down = False
    await rotate(home, clock, processes)
    assert len(Keyring.load(home.master_key_file).keys) == 1


async def test_values_that_cannot_be_decrypted_are_named_and_keep_the_old_key(home: Home) -> None:
    clock, processes = PassingTime(), FollowingProcesses(home)
    processes.damaged = ("chat.secrets/1",)
    with pytest.raises(CliError, match=r"cannot decrypt chat\.secrets/1"):
        await rotate(home, clock, processes)
    assert len(Keyring.load(home.master_key_file).keys) == 2


async def test_only_chosen_keys_are_replaced(home: Home) -> None:
    clock, processes = PassingTime(), FollowingProcesses(home)
    signing, authority = signing_key_ids(home), authority_of(home)
    rotator = KeyRotator(home, processes, clock, OVERLAP, lambda line: None)
    rotation: Rotation | None = begin(home, (KeyKind.MASTER,), clock.now())
    while rotation is not None:
        rotation = await rotator.advance(rotation)
    assert (signing_key_ids(home), authority_of(home)) == (signing, authority)
    assert len(Keyring.load(home.master_key_file).keys) == 1
