"""Which commands go into the background, and what a shell would read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatd.tools.workspace.background import (
    BASH_REDIRECT_NOTE,
    INNER_NOTE,
    PROMOTED_NOTE,
    STRIPPED_NOTE,
    WRAPPER_NOTE,
    Planned,
    planned,
)

PROMOTED = (PROMOTED_NOTE,)
UNWRAPPED = (PROMOTED_NOTE, WRAPPER_NOTE)


@pytest.mark.parametrize(
    ("command", "run", "notes"),
    [
        ("srv &", "srv", PROMOTED),
        ("srv&", "srv", PROMOTED),
        ("  srv --port 80 & \n\n", "srv --port 80", PROMOTED),
        ("a && b &", "a && b", PROMOTED),
        ("cd app; npm start &", "cd app; npm start", PROMOTED),
        ("cd app\nnpm start &", "cd app\nnpm start", PROMOTED),
        ("srv >log 2>&1 &", "srv >log 2>&1", PROMOTED),
        ("srv >&log&", "srv >&log", PROMOTED),
        ("a | tee log &", "a | tee log", PROMOTED),
        ("(a; b) &", "(a; b)", PROMOTED),
        ("{ a; b; } &", "{ a; b; }", PROMOTED),
        ("srv & # serves", "srv  # serves", PROMOTED),
        ("srv&# it's serving", "srv # it's serving", PROMOTED),
        ("echo 'it''s &' &", "echo 'it''s &'", PROMOTED),
        ("echo a\\\\&", "echo a\\\\", PROMOTED),
        ("srv \\\n  --port 80 &\\\n", "srv \\\n  --port 80 \\\n", PROMOTED),
        ("echo a\\ &", "echo a\\ ", PROMOTED),
        ("cat <<EOF &\nmore &\nEOF\n", "cat <<EOF \nmore &\nEOF", PROMOTED),
        ("case $x in a) b;; esac &", "case $x in a) b;; esac", PROMOTED),
        ("nohup a &", "a", UNWRAPPED),
        ("nohup a >log 2>&1 &", "a >log 2>&1", UNWRAPPED),
        ("setsid a &", "a", UNWRAPPED),
        ("nohup setsid a &", "a", UNWRAPPED),
        ("nohup setsid -f a &", "setsid -f a", UNWRAPPED),
        ("cd b; setsid nohup a nohup c & disown", "cd b; a nohup c", UNWRAPPED),
        ("a & disown", "a", UNWRAPPED),
        ("a & disown %1", "a", UNWRAPPED),
        ("nohup a & disown", "a", UNWRAPPED),
        ("cd app && nohup npm start &", "cd app && npm start", UNWRAPPED),
        ("setsid -f a &", "setsid -f a", PROMOTED),
        ("nohup { a; } &", "nohup { a; }", PROMOTED),
        ("nohup X=1 a &", "nohup X=1 a", PROMOTED),
        ("a & b &", "a & b", (PROMOTED_NOTE, INNER_NOTE)),
    ],
)
def test_a_command_that_puts_itself_into_the_background_is_run_there(
    command: str, run: str, notes: tuple[str, ...]
) -> None:
    assert planned(command, is_background=False) == Planned(run, True, notes)


@pytest.mark.parametrize(
    "command",
    [
        "a &&",
        "a |&",
        "a |& b",
        "a && b",
        "echo 'x &'",
        'echo "x &"',
        'echo "$(printf "x &")"',
        "echo \\&",
        "a # note &",
        "a #&",
        "a\n# &",
        "echo $#",
        "case $x in a) b ;;&",
        "case $x in a) b ;&",
        "case $x in a) b ;;& *) c ;; esac",
        "cat <<EOF\nx &\nEOF",
        "cat <<'E O F'\nx &\nE O F",
        "cat <<-EOF\n\tx &\n\tEOF",
        "cat <<EOF\nx &",
        "echo $((6 & 3))",
        "echo $(( (6 & 3) | 1 ))",
        "echo ${x:-&}",
        "echo `date; echo \\& &`",
        "echo $'it\\'s &'",
        "x=$(case $y in a) echo b;; esac)",
        "a >& log",
        "a 2>&1",
        "a 0<&3",
        "echo &&",
        "&",
        "a && &",
        "; &",
        "echo 'no end &",
        'echo "no end &',
        "echo $(no end &",
        "nohup a",
        "",
    ],
)
def test_a_character_that_looks_like_a_trailing_ampersand_changes_nothing(command: str) -> None:
    assert planned(command, is_background=False).command == command
    assert not planned(command, is_background=False).is_background


@pytest.mark.parametrize(
    "command",
    [
        "a & b",
        "a & wait",
        "a & echo $!",
        "(a &)",
        "for x in 1 2; do a & done; wait",
        "a &\nb",
        "(a &",
    ],
)
def test_an_ampersand_in_the_middle_is_run_as_it_is_and_warned_of(command: str) -> None:
    assert planned(command, is_background=False) == Planned(command, False, (INNER_NOTE,))


@pytest.mark.parametrize("operator", ["&>", "&>>"])
def test_a_redirect_that_only_bash_knows_is_warned_of(operator: str) -> None:
    command = f"a {operator} log"
    assert planned(command, is_background=False) == Planned(command, False, (BASH_REDIRECT_NOTE,))


@pytest.mark.parametrize(
    ("command", "run", "notes"),
    [
        ("srv &", "srv", (STRIPPED_NOTE,)),
        ("nohup srv &", "srv", (STRIPPED_NOTE, WRAPPER_NOTE)),
        ("nohup srv", "srv", (WRAPPER_NOTE,)),
        ("srv", "srv", ()),
        ("echo \\&", "echo \\&", ()),
    ],
)
def test_a_command_that_is_meant_for_the_background_loses_its_ampersand(
    command: str, run: str, notes: tuple[str, ...]
) -> None:
    assert planned(command, is_background=True) == Planned(run, True, notes)


def test_nesting_without_end_is_left_to_the_shell() -> None:
    command = "echo " + "$(" * 5000 + " &"
    assert planned(command, is_background=False) == Planned(command, False)


@given(st.text(alphabet="a &|;<>()'\"\\$`#{}\n\tEOF-1", max_size=40), st.booleans())
def test_any_text_can_be_planned(command: str, is_background: bool) -> None:
    plan = planned(command, is_background=is_background)
    assert plan.is_background >= is_background
    if not plan.notes:
        assert plan.command == command
