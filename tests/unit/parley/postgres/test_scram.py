import pytest

from parley.postgres.provisioning import scram_verifier

SALT = bytes(range(16))


def test_a_verifier_depends_on_password_and_salt_only() -> None:
    assert scram_verifier("pencil", salt=SALT) == scram_verifier("pencil", salt=SALT)
    assert scram_verifier("pencil", salt=SALT) != scram_verifier("pencils", salt=SALT)
    assert scram_verifier("pencil") != scram_verifier("pencil")


def test_a_verifier_names_its_method_rounds_and_salt() -> None:
    assert scram_verifier("pencil", salt=SALT).startswith(
        "SCRAM-SHA-256$4096:AAECAwQFBgcICQoLDA0ODw==$"
    )


def test_a_password_beyond_ascii_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        scram_verifier("passwört")
