"""The lexer of shell text against a shell."""

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatd.tools.workspace.background import planned

BASH = shutil.which("bash")
PIECES = (
    *("a", "b", " ", " ", "&", "&", "&&", "|", ";", "\n", "'x &'", '"y &"', "\\&", "\\\\", "#"),
    *("# c &\n", "$(b &)", "`b &`", "$((1&2))", "${x:-&}", "(a)", "{ a; }", ">f", "2>&1", "&>f"),
    *("<<E\nq &\nE\n", "case a in a) b;; esac", "nohup ", "setsid ", "disown", "\\\n", "$'\\''"),
    *("for i in 1; do a & done", "if a; then b; fi", "|&", "(", ")", "'", '"'),
)
pytestmark = pytest.mark.skipif(BASH is None, reason="there is no bash to compare with")


def parsed_by_bash(text: str) -> str | None:
    """Return how bash understands a text, None if it does not."""
    script = f"f() {{\n{text}\n}}\ndeclare -f f"
    # Nothing is run; if bash saw an end of the function where none is, nothing could be.
    done = subprocess.run(
        [str(BASH), "-c", script], capture_output=True, text=True, check=False, env={}, cwd="/proc"
    )
    is_one_body = done.stdout.startswith("f () \n{ \n") and done.stdout.endswith("\n}\n")
    return done.stdout if done.returncode == 0 and is_one_body else None


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join))
def test_bash_sees_the_same_trailing_ampersand(text: str) -> None:
    plan = planned(text, is_background=False)
    understood = parsed_by_bash(text)
    if understood is None or "<<" in text or "`" in text or "disown" in text:
        return
    body = understood.removesuffix("\n}\n").rstrip()
    assert plan.is_background == (body.endswith("&") and not body.endswith("\\&")), understood


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join))
def test_what_bash_can_read_it_can_still_read(text: str) -> None:
    plan = planned(text, is_background=True)
    if plan.command != text and parsed_by_bash(text) is not None:
        assert parsed_by_bash(plan.command) is not None, plan
