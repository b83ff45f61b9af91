"""Taking secrets out of text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.telemetry import Redactor

# Put together here, so that no scanner takes this file for a leak.
KEY = "-----BEGIN " + "PRIVATE KEY-----\nMIIEvQ+/=\nabc\n-----END " + "PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("key sk-" + "proj-abcdEFGH1234 used", "key [redacted] used"),
        ("push ghp_" + "a1B2" * 9, "push [redacted]"),
        ("pat github_pat_" + "a1B2" * 9, "pat [redacted]"),
        *((f"push gh{kind}_" + "a1B2" * 9, "push [redacted]") for kind in "orsu"),
        ("aws AKIA" + "ABCDEFGH12345678.", "aws [redacted]."),
        ("aws ASIA" + "ABCDEFGH12345678.", "aws [redacted]."),
        ("google AIza" + "a1B2" * 9, "google [redacted]"),
        ("slack xoxb-" + "a1B2" * 9, "slack [redacted]"),
        ("pipe ac_" + "a1B2" * 9, "pipe [redacted]"),
        ("token eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl!", "token [redacted]!"),
        ("api pk_" + "live0123456789abcdef", "api [redacted]"),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer [redacted]"),
        ("authorization: basic dXNlcjpwYXNz", "authorization: basic [redacted]"),
        (f"key:\n{KEY}\nend", "key:\n[redacted]\nend"),
        ("cut -----BEGIN EC " + "PRIVATE KEY-----\nMIIE", "cut [redacted]"),
        ("to postgresql://chatd:hunter2@db:5432/x", "to postgresql://chatd:[redacted]@db:5432/x"),
    ],
)
def test_known_shapes_are_replaced(text: str, clean: str) -> None:
    assert Redactor().clean(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "a risk-assessment-document is no key",
        "duplicate key violates pk_messages_by_chat_and_version",
        "http://localhost:8080/path@here",
        "chat 0198c0de-0000-7000-8000-000000000000 finished in 12 s",
        "-----BEGIN CERTIFICATE-----",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert Redactor().clean(text) == text


def test_a_registered_value_is_replaced_wherever_it_stands() -> None:
    redactor = Redactor()
    redactor.register("correct horse")
    assert redactor.clean("<correct horse>correct horse") == "<[redacted]>[redacted]"


def test_of_two_values_the_longer_one_goes_as_a_whole() -> None:
    redactor = Redactor()
    redactor.register("battery")
    redactor.register("battery-staple")
    assert redactor.clean("battery-staple battery") == "[redacted] [redacted]"


def test_too_short_a_value_would_blank_out_everything_and_is_not_registered() -> None:
    redactor = Redactor()
    redactor.register("a")
    redactor.register("")
    assert redactor.clean("a banana") == "a banana"


secrets = st.text(min_size=6, max_size=40).filter(
    lambda value: len(value.strip()) >= 6 and value.strip() not in "[redacted]"
)


@given(secret=secrets, before=st.text(max_size=20), after=st.text(max_size=20))
def test_no_registered_value_survives_as_text_or_as_json(
    secret: str, before: str, after: str
) -> None:
    redactor = Redactor()
    redactor.register(secret)
    secret = secret.strip()
    escaped = redactor.clean(json.dumps(secret)[1:-1])

    assert secret not in redactor.clean(before + secret + after).replace("[redacted]", "\0")
    assert escaped == "[redacted]"


@given(before=st.text(max_size=20), after=st.text(max_size=20))
@pytest.mark.parametrize("secret", ["Bearer abcdefgh", KEY, "x://u:p@h", "sk-" + "abcdefgh"])
def test_a_redacted_json_line_is_still_json(secret: str, before: str, after: str) -> None:
    line = Redactor().clean(json.dumps({"message": before + secret + after, "next": 1}))
    assert json.loads(line)["next"] == 1
