import pytest

from toolrunner.primitives.errors import InvalidRequest
from toolrunner.processes.terminal_keys import KEYS, bytes_of_keys


@pytest.mark.parametrize(
    ("names", "pressed"),
    [
        (["enter"], b"\r"),
        (["ctrl-c", "ctrl-d"], b"\x03\x04"),
        (["Ctrl+C"], b"\x03"),
        (["up", "page-down"], b"\x1b[A\x1b[6~"),
        (["alt-x", "alt-X", "alt-enter"], b"\x1bx\x1bX\x1b\r"),
        (["f12", "shift-tab", "escape"], b"\x1b[24~\x1b[Z\x1b"),
        ([], b""),
    ],
)
def test_keys_are_known_by_their_names(names: list[str], pressed: bytes) -> None:
    assert bytes_of_keys(names) == pressed


@pytest.mark.parametrize("name", ["hyper-x", "", "alt-", "ctrl-", "a", "ctrl-é"])
def test_a_name_that_is_none_is_refused_with_examples(name: str) -> None:
    with pytest.raises(InvalidRequest, match="name keys as in enter"):
        bytes_of_keys([name])


def test_control_and_a_letter_is_one_byte_each() -> None:
    letters = {name: sent for name, sent in KEYS.items() if name.startswith("ctrl-")}
    assert {len(sent) for sent in letters.values()} == {1}
