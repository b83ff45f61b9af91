"""Reading settings from an environment."""

import pickle
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pytest

from parley.settings import (
    ConfigurationError,
    Secret,
    SettingLine,
    SettingsError,
    describe,
    read,
    setting,
)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int

    @classmethod
    def parse(cls, text: str) -> "Point":
        x, _, y = text.partition("/")
        if not (x.isdigit() and y.isdigit()):
            raise ValueError("give x/y")
        return cls(int(x), int(y))


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    text: str = setting("Some text.")
    count: int = setting("How many.", default=3, at_least=1)
    ratio: float = setting("A share of one.", default=0.5)
    is_open: bool = setting("Whether it is open.", default=False)
    path: Path = setting("A place.", default=Path("/somewhere"))
    token: Secret = setting("The token.")
    hosts: tuple[str, ...] = setting("Hosts.", default=("a", "b"))
    colour: Colour = setting("A colour.", default=Colour.RED)
    point: Point | None = setting("A point.", default=None)


REQUIRED = {"APP_TEXT": "hello", "APP_TOKEN": "t0ken-value"}


def problems_of(environment: dict[str, str]) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        read(Everything, environment, prefix="APP")
    return caught.value.problems


def test_every_type_is_read() -> None:
    environment = {
        "APP_TEXT": "hello",
        "APP_COUNT": "7",
        "APP_RATIO": "0.25",
        "APP_IS_OPEN": "Yes",
        "APP_PATH": "/tmp/x",
        "APP_TOKEN": "t0ken-value",
        "APP_HOSTS": "one, two,,three",
        "APP_COLOUR": "BLUE",
        "APP_POINT": "3/4",
        "UNRELATED": "ignored",
    }
    assert read(Everything, environment, prefix="APP") == Everything(
        text="hello",
        count=7,
        ratio=0.25,
        is_open=True,
        path=Path("/tmp/x"),
        token=Secret("t0ken-value"),
        hosts=("one", "two", "three"),
        colour=Colour.BLUE,
        point=Point(3, 4),
    )


def test_what_is_not_set_or_set_to_nothing_has_its_default() -> None:
    environment = {**REQUIRED, "APP_COUNT": "", "APP_POINT": "  "}
    assert read(Everything, environment, prefix="APP") == Everything(
        text="hello", token=Secret("t0ken-value")
    )


def test_a_missing_setting_says_what_to_set() -> None:
    assert problems_of({}) == (
        "APP_TEXT is not set: set it to a text (Some text)",
        "APP_TOKEN is not set: set it or APP_TOKEN_FILE to a secret (The token)",
    )


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("APP_COUNT", "many", "APP_COUNT is 'many', give a whole number"),
        ("APP_COUNT", "0", "APP_COUNT is '0', give at least 1"),
        ("APP_RATIO", "half", "APP_RATIO is 'half', give a number"),
        ("APP_RATIO", "nan", "APP_RATIO is 'nan', give a number"),
        ("APP_RATIO", "inf", "APP_RATIO is 'inf', give a number"),
        ("APP_IS_OPEN", "maybe", "APP_IS_OPEN is 'maybe', give true or false"),
        ("APP_COLOUR", "green", "APP_COLOUR is 'green', give red or blue"),
        ("APP_POINT", "here", "APP_POINT cannot be used: give x/y"),
    ],
)
def test_a_malformed_value_says_what_to_give(name: str, text: str, problem: str) -> None:
    assert problems_of({**REQUIRED, name: text}) == (problem,)


def test_an_unknown_name_is_told_its_nearest_neighbour() -> None:
    assert problems_of({**REQUIRED, "APP_COLOR": "red", "APP_TOKEN_FIEL": "x"}) == (
        "APP_COLOR is not a setting: did you mean APP_COLOUR?",
        "APP_TOKEN_FIEL is not a setting: did you mean APP_TOKEN_FILE?",
    )


def test_a_longer_prefix_is_another_service() -> None:
    assert read(Everything, {**REQUIRED, "APPLE_COLOR": "red"}, prefix="APP").text == "hello"


def test_a_secret_may_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("from-the-file\n")

    settings = read(Everything, {"APP_TEXT": "x", "APP_TOKEN_FILE": str(file)}, prefix="APP")

    assert settings.token.reveal() == "from-the-file"


def test_only_secrets_may_come_from_a_file(tmp_path: Path) -> None:
    assert problems_of({**REQUIRED, "APP_TEXT_FILE": str(tmp_path)}) == (
        "APP_TEXT_FILE is not a setting: only secrets are read from files, so set APP_TEXT",
    )


def test_a_secret_given_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("from-the-file")
    assert problems_of({**REQUIRED, "APP_TOKEN_FILE": str(file)}) == (
        "APP_TOKEN and APP_TOKEN_FILE are both set: unset one of them",
    )


def test_a_secret_file_that_is_absent_empty_or_binary_is_refused(tmp_path: Path) -> None:
    absent, empty, binary = (tmp_path / name for name in ("absent", "empty", "binary"))
    empty.write_text("\n")
    binary.write_bytes(b"\xff\xfe")
    found = [
        problems_of({"APP_TEXT": "x", "APP_TOKEN_FILE": str(file)})
        for file in (absent, empty, binary)
    ]
    assert found == [
        (f"APP_TOKEN_FILE names {absent}, which cannot be read: No such file or directory",),
        (f"APP_TOKEN_FILE names {empty}, which is empty: write the secret into it",),
        (f"APP_TOKEN_FILE names {binary}, which is not UTF-8 text",),
    ]


def test_what_the_dataclass_itself_refuses_is_a_problem() -> None:
    @dataclass(frozen=True)
    class Range:
        low: int = setting("The least.", default=0)
        high: int = setting("The most.", default=9)

        def __post_init__(self) -> None:
            if self.low > self.high:
                raise ValueError("R_LOW is above R_HIGH: swap them")

    with pytest.raises(SettingsError) as caught:
        read(Range, {"R_LOW": "10"}, prefix="R")
    assert caught.value.problems == ("R_LOW is above R_HIGH: swap them",)


def test_settings_errors_are_configuration_errors() -> None:
    assert issubclass(SettingsError, ConfigurationError)


def test_the_reference_has_a_line_for_every_setting() -> None:
    assert describe(Everything, prefix="APP") == (
        SettingLine("APP_TEXT", "text", None, "Some text.", is_required=True),
        SettingLine("APP_COUNT", "whole number", "3", "How many.", is_required=False),
        SettingLine("APP_RATIO", "number", "0.5", "A share of one.", is_required=False),
        SettingLine("APP_IS_OPEN", "true or false", "false", "Whether it is open.", False),
        SettingLine("APP_PATH", "path", "/somewhere", "A place.", is_required=False),
        SettingLine("APP_TOKEN or APP_TOKEN_FILE", "secret", None, "The token.", is_required=True),
        SettingLine("APP_HOSTS", "comma-separated list", "a,b", "Hosts.", is_required=False),
        SettingLine("APP_COLOUR", "red or blue", "red", "A colour.", is_required=False),
        SettingLine("APP_POINT", "point", None, "A point.", is_required=False),
    )


def test_a_secret_does_not_show_itself() -> None:
    settings = read(Everything, REQUIRED, prefix="APP")

    shown = f"{settings!r} {settings.token} {[settings.token]}"

    assert "t0ken-value" not in shown
    with pytest.raises(TypeError):
        pickle.dumps(settings.token)


def test_a_list_may_hold_anything_that_can_be_parsed() -> None:
    @dataclass(frozen=True)
    class Places:
        points: tuple[Point, ...] = setting("Points.")

    given = {"APP_POINTS": "1/2, 3/4"}
    assert read(Places, given, prefix="APP") == Places((Point(1, 2), Point(3, 4)))


def test_one_bad_entry_of_a_list_is_named() -> None:
    @dataclass(frozen=True)
    class Numbers:
        counts: tuple[int, ...] = setting("Counts.")

    with pytest.raises(SettingsError) as caught:
        read(Numbers, {"APP_COUNTS": "1,two"}, prefix="APP")
    assert caught.value.problems == ("APP_COUNTS is 'two', give a whole number",)
