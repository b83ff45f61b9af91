"""Which names of groups are the same."""

import pytest

from gateway.identity.engine.groups import name_key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Research", "rESEARCH"),
        ("Straße", "STRASSE"),
        ("Ärzte", "a\u0308rzte"),
        ("ﬁnance", "Finance"),
        ("ΣΟΦΟΣ", "σοφος"),
    ],
)
def test_names_are_compared_without_regard_to_case_and_spelling(one: str, other: str) -> None:
    assert name_key(one) == name_key(other)


def test_other_names_are_others() -> None:
    names = ("Research", "Research 2", "Résearch")

    assert len({name_key(name) for name in names}) == len(names)
