import json
import logging
from datetime import timedelta
from pathlib import Path

import pytest

from parley.clock import FakeClock
from parley.identity import (
    ServiceName,
    SigningKey,
    SigningKeyUnreadable,
    Trust,
    TrustedKey,
    TrustFile,
    TrustFileUnreadable,
    UnknownKey,
)


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_signing_key_survives_its_file(tmp_path: Path) -> None:
    key = SigningKey.generate()
    key.save(tmp_path / "key.pem")

    assert SigningKey.load(tmp_path / "key.pem") == key
    assert mode_of(tmp_path / "key.pem") == 0o600


def test_the_private_half_is_not_in_the_representation() -> None:
    assert "private" not in repr(SigningKey.generate())


def test_a_file_without_a_signing_key_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    with pytest.raises(SigningKeyUnreadable) as missing:
        SigningKey.load(path)
    path.write_text("no key")
    with pytest.raises(SigningKeyUnreadable) as malformed:
        SigningKey.load(path)

    assert (missing.value.path, malformed.value.path) == (path, path)


def test_keys_are_added_retired_and_forgotten(tmp_path: Path) -> None:
    clock = FakeClock()
    file = TrustFile(tmp_path / "trust.json")
    old, new = SigningKey.generate(), SigningKey.generate()

    file.add_key(ServiceName.CHATD, old)
    file.add_key(ServiceName.CHATD, new)
    file.add_key(ServiceName.CHATD, new)
    file.retire_key(old.kid, now=clock.now(), overlap_s=60)

    end = clock.now() + timedelta(seconds=60)
    retired = TrustedKey(old.kid, ServiceName.CHATD, old.public, retired_at=end)
    assert file.read() == (retired, TrustedKey.of(ServiceName.CHATD, new))
    assert file.forget_retired(now=clock.now()) == ()
    assert file.forget_retired(now=end) == (retired,)
    assert file.read() == (TrustedKey.of(ServiceName.CHATD, new),)
    assert mode_of(file.path) == 0o644
    assert [path.name for path in tmp_path.iterdir()] == ["trust.json"]


def test_an_unknown_key_cannot_be_retired(tmp_path: Path) -> None:
    file = TrustFile(tmp_path / "trust.json")
    file.write(())

    with pytest.raises(UnknownKey) as caught:
        file.retire_key("feed", now=FakeClock().now(), overlap_s=0)
    assert caught.value.kid == "feed"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"keys": [{"kid": "a"}]}',
        '{"keys": [{"kid": "a", "service": "other", "public": ""}]}',
        '{"keys": [{"kid": "a", "service": "chatd", "public": "!!"}]}',
        '{"keys": [{"kid": "a", "service": "chatd", "public": "AAAA"}]}',
    ],
)
def test_a_malformed_trust_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trust.json"
    path.write_text(text)

    with pytest.raises(TrustFileUnreadable) as caught:
        Trust(path, FakeClock())
    assert caught.value.path == path


def test_a_key_under_another_keys_id_is_refused(tmp_path: Path) -> None:
    file = TrustFile(tmp_path / "trust.json")
    file.add_key(ServiceName.CHATD, SigningKey.generate())
    document = json.loads(file.path.read_text())
    document["keys"][0]["kid"] = SigningKey.generate().kid
    file.path.write_text(json.dumps(document))

    with pytest.raises(TrustFileUnreadable):
        file.read()


def test_a_missing_trust_file_is_refused_at_start(tmp_path: Path) -> None:
    with pytest.raises(TrustFileUnreadable):
        Trust(tmp_path / "trust.json", FakeClock())


def test_an_unknown_key_makes_trust_read_again_once_a_second(tmp_path: Path) -> None:
    clock = FakeClock()
    file = TrustFile(tmp_path / "trust.json")
    file.write(())
    trust = Trust(file.path, clock)
    key = SigningKey.generate()
    file.add_key(ServiceName.CHATD, key)

    clock.advance(0.9)
    assert trust.find(key.kid) is None
    clock.advance(0.1)
    assert trust.find(key.kid) == TrustedKey.of(ServiceName.CHATD, key)


def test_a_retirement_arrives_without_a_restart(tmp_path: Path) -> None:
    clock = FakeClock()
    file = TrustFile(tmp_path / "trust.json")
    key = SigningKey.generate()
    file.add_key(ServiceName.CHATD, key)
    trust = Trust(file.path, clock)
    file.retire_key(key.kid, now=clock.now(), overlap_s=0)

    clock.advance(29)
    assert trust.find(key.kid) is not None
    clock.advance(1)
    assert trust.find(key.kid) is None


def test_a_file_that_breaks_later_does_not_take_trust_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    file = TrustFile(tmp_path / "trust.json")
    key = SigningKey.generate()
    file.add_key(ServiceName.CHATD, key)
    trust = Trust(file.path, clock)
    file.path.write_text("broken")
    clock.advance(30)

    with caplog.at_level(logging.WARNING):
        assert trust.find(key.kid) == TrustedKey.of(ServiceName.CHATD, key)
    assert len(caplog.records) == 1
