from pathlib import Path

import pytest

from parley.secrets import KeyMissing, Keyring, KeyringFile, SecretBox

PLACE = {"table": "t", "column": "c", "row_id": "1"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keyring"


def test_a_process_seals_with_a_new_key_and_opens_with_the_old_one_as_soon_as_the_file_has_both(
    path: Path,
) -> None:
    old = Keyring.generate()
    old.save(path)
    box = SecretBox(KeyringFile(path))
    before = box.seal(b"value", **PLACE)
    new = old.with_readable_key().with_newest_first()
    new.save(path)
    after = box.seal(b"value", **PLACE)
    assert (before.key_id, after.key_id) == (old.writing_key.id, new.writing_key.id)
    assert box.open(before, **PLACE) == box.open(after, **PLACE) == b"value"


def test_an_old_key_is_refused_once_the_file_lacks_it(path: Path) -> None:
    old = Keyring.generate()
    new = old.with_readable_key().with_newest_first()
    new.save(path)
    box = SecretBox(KeyringFile(path))
    sealed = SecretBox(old).seal(b"value", **PLACE)
    assert box.open(sealed, **PLACE) == b"value"
    new.without_old_keys().save(path)
    with pytest.raises(KeyMissing):
        box.open(sealed, **PLACE)


@pytest.mark.parametrize("content", [b"", b"{", b'{"keys": []}'])
def test_a_file_that_cannot_be_read_changes_nothing(
    path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    keyring = Keyring.generate()
    keyring.save(path)
    file = KeyringFile(path)
    path.write_bytes(content)
    assert file.current == keyring
    assert str(path) in caplog.text
    path.unlink()
    assert file.current == keyring


def test_the_keyring_of_another_database_is_ignored(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keyring = Keyring.generate()
    keyring.save(path)
    file = KeyringFile(path)
    Keyring.generate().save(path)
    assert file.current == keyring
    assert "has none of the keys in use" in caplog.text
