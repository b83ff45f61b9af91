import os
from collections.abc import Callable
from pathlib import Path

import pytest

from parley.secrets import Key, KeyMissing, Keyring, KeyringUnreadable, WrongKey


def always(byte: int) -> Callable[[int], bytes]:
    return lambda count: bytes([byte]) * count


OLD, NEW = Key.generate(always(1)), Key.generate(always(2))


def test_a_keyring_survives_its_file_which_only_its_owner_reads(tmp_path: Path) -> None:
    keyring = Keyring((NEW, OLD))
    path = tmp_path / "keys.json"
    keyring.save(path)

    assert Keyring.load(path) == keyring
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["keys.json"]


def test_key_material_is_not_in_the_representation() -> None:
    assert "material" not in repr(Keyring((OLD,)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"keys": []}',
        '{"keys": [{"id": "a", "key": "AAAA"}]}',
        '{"keys": [{"id": "a", "key": "not base64!"}]}',
        f'{{"keys": [{{"id": "", "key": "{"A" * 43}="}}]}}',
        f'{{"keys": [{", ".join([f"""{{"id": "a", "key": "{"A" * 43}="}}"""] * 2)}]}}',
    ],
)
def test_a_malformed_key_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(text)

    with pytest.raises(KeyringUnreadable) as caught:
        Keyring.load(path)
    assert caught.value.path == path
    assert "AAAA" not in str(caught.value)


def test_a_missing_key_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(KeyringUnreadable) as caught:
        Keyring.load(tmp_path / "keys.json")
    assert caught.value.path == tmp_path / "keys.json"


def test_the_first_key_writes_and_all_read() -> None:
    keyring = Keyring((OLD,)).with_readable_key(always(2)).with_newest_first()

    assert keyring == Keyring((NEW, OLD))
    assert keyring.writing_key == NEW
    assert (keyring.key(OLD.id), keyring.key(NEW.id)) == (OLD, NEW)
    with pytest.raises(KeyMissing) as caught:
        keyring.key("none")
    assert caught.value.key_id == "none"


def test_old_keys_are_removed_and_the_one_that_seals_stays() -> None:
    assert Keyring((NEW, OLD)).without_old_keys() == Keyring((NEW,))


def test_keys_of_this_installation_and_further_ones_are_accepted() -> None:
    Keyring((NEW, OLD)).check({})
    Keyring((NEW, OLD)).check({OLD.id: OLD.fingerprint})


def test_a_key_file_of_another_installation_is_noticed_at_start() -> None:
    with pytest.raises(WrongKey) as missing:
        Keyring((NEW,)).check({OLD.id: OLD.fingerprint})
    with pytest.raises(WrongKey) as different:
        Keyring((Key(OLD.id, NEW.material),)).check({OLD.id: OLD.fingerprint})

    assert (missing.value.key_ids, different.value.key_ids) == ((OLD.id,), (OLD.id,))


def test_a_fingerprint_tells_keys_apart_and_is_stable() -> None:
    assert OLD.fingerprint == Key("other name", OLD.material).fingerprint
    assert OLD.fingerprint != NEW.fingerprint
