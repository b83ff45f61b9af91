import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.secrets import (
    CiphertextDamaged,
    CiphertextTampered,
    CiphertextTruncated,
    Key,
    KeyMissing,
    Keyring,
    Sealed,
    SecretBox,
)

OLD, NEW = Key.generate(lambda count: b"\x01" * count), Key.generate(lambda count: b"\x02" * count)
OLD_BOX = SecretBox(Keyring((OLD,)), os.urandom)
NEW_BOX = SecretBox(Keyring((NEW, OLD)), os.urandom)

# Names with the separator in them, because that is where bindings get confused.
NAMES = st.text(st.sampled_from("ab|:1"), max_size=4)


@given(plain=st.binary(), table=NAMES, column=NAMES, row_id=NAMES)
def test_what_is_sealed_opens_in_its_place(
    plain: bytes, table: str, column: str, row_id: str
) -> None:
    sealed = OLD_BOX.seal(plain, table=table, column=column, row_id=row_id)

    assert OLD_BOX.open(sealed, table=table, column=column, row_id=row_id) == plain
    assert sealed.key_id == OLD.id


@given(here=st.tuples(NAMES, NAMES, NAMES), there=st.tuples(NAMES, NAMES, NAMES))
def test_a_value_opens_in_no_other_place(
    here: tuple[str, str, str], there: tuple[str, str, str]
) -> None:
    if here == there:
        return
    sealed = OLD_BOX.seal(b"secret", table=here[0], column=here[1], row_id=here[2])

    with pytest.raises(CiphertextTampered) as caught:
        OLD_BOX.open(sealed, table=there[0], column=there[1], row_id=there[2])
    assert (caught.value.table, caught.value.column, caught.value.row_id) == there


@given(data=st.data())
def test_any_changed_bit_is_noticed(data: st.DataObject) -> None:
    sealed = OLD_BOX.seal(b"secret", table="t", column="c", row_id="1")
    at = data.draw(st.integers(0, len(sealed.ciphertext) * 8 - 1))
    changed = bytearray(sealed.ciphertext)
    changed[at // 8] ^= 1 << at % 8

    with pytest.raises(CiphertextDamaged):
        OLD_BOX.open(Sealed(bytes(changed), OLD.id), table="t", column="c", row_id="1")


@given(data=st.data())
def test_any_shortening_is_noticed(data: st.DataObject) -> None:
    sealed = OLD_BOX.seal(b"secret", table="t", column="c", row_id="1")
    kept = data.draw(st.integers(0, len(sealed.ciphertext) - 1))

    with pytest.raises(CiphertextDamaged):
        OLD_BOX.open(Sealed(sealed.ciphertext[:kept], OLD.id), table="t", column="c", row_id="1")


def test_a_stump_is_called_truncated() -> None:
    with pytest.raises(CiphertextTruncated):
        OLD_BOX.open(Sealed(b"\x01" * 20, OLD.id), table="t", column="c", row_id="1")


def test_rewrapping_changes_the_wrapping_only() -> None:
    sealed = OLD_BOX.seal(b"secret", table="t", column="c", row_id="1")
    rewrapped = NEW_BOX.rewrap(sealed, table="t", column="c", row_id="1")
    wrapping = 1 + 12 + 32 + 16

    assert rewrapped.key_id == NEW.id
    assert rewrapped.ciphertext[:wrapping] != sealed.ciphertext[:wrapping]
    assert rewrapped.ciphertext[wrapping:] == sealed.ciphertext[wrapping:]
    only_new = SecretBox(Keyring((NEW,)), os.urandom)
    assert only_new.open(rewrapped, table="t", column="c", row_id="1") == b"secret"


def test_rewrapping_twice_changes_nothing_more() -> None:
    sealed = OLD_BOX.seal(b"secret", table="t", column="c", row_id="1")
    rewrapped = NEW_BOX.rewrap(sealed, table="t", column="c", row_id="1")

    assert NEW_BOX.needs_rewrap(sealed)
    assert not NEW_BOX.needs_rewrap(rewrapped)
    assert NEW_BOX.rewrap(rewrapped, table="t", column="c", row_id="1") is rewrapped


def test_a_value_is_not_rewrapped_into_another_row() -> None:
    sealed = OLD_BOX.seal(b"secret", table="t", column="c", row_id="1")

    with pytest.raises(CiphertextTampered):
        NEW_BOX.rewrap(sealed, table="t", column="c", row_id="2")


def test_old_values_open_while_a_rotation_is_under_way() -> None:
    sealed = OLD_BOX.seal(b"secret", table="t", column="c", row_id="1")

    assert NEW_BOX.open(sealed, table="t", column="c", row_id="1") == b"secret"
    assert NEW_BOX.seal(b"x", table="t", column="c", row_id="1").key_id == NEW.id


def test_a_value_of_a_removed_key_names_that_key() -> None:
    sealed = NEW_BOX.seal(b"secret", table="t", column="c", row_id="1")

    with pytest.raises(KeyMissing) as caught:
        OLD_BOX.open(sealed, table="t", column="c", row_id="1")
    assert caught.value.key_id == NEW.id


def test_a_value_does_not_open_under_another_keys_name() -> None:
    sealed = OLD_BOX.seal(b"secret", table="t", column="c", row_id="1")

    with pytest.raises(CiphertextTampered):
        NEW_BOX.open(Sealed(sealed.ciphertext, NEW.id), table="t", column="c", row_id="1")


def test_equal_values_are_sealed_differently() -> None:
    first = OLD_BOX.seal(b"secret", table="t", column="c", row_id="1")
    second = OLD_BOX.seal(b"secret", table="t", column="c", row_id="1")

    assert first.ciphertext != second.ciphertext
    assert b"secret" not in first.ciphertext


def test_all_chance_comes_from_the_argument() -> None:
    asked: list[int] = []

    def counting(count: int) -> bytes:
        asked.append(count)
        return bytes(count)

    SecretBox(Keyring((OLD,)), counting).seal(b"secret", table="t", column="c", row_id="1")
    assert sorted(asked) == [12, 12, 32]
