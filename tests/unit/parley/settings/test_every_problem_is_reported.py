"""Whatever combination of settings is broken, each broken one is reported, and nothing else."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from parley.settings import Secret, SettingsError, read, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    name: str = setting("A name.")
    retries: int = setting("How often.", at_least=0)
    wait_s: float = setting("How long, in seconds.", default=1.0)
    is_loud: bool = setting("Whether it is loud.", default=False)
    password: Secret = setting("A password.")


GOOD = {
    "APP_NAME": "a",
    "APP_RETRIES": "1",
    "APP_WAIT_S": "2",
    "APP_IS_LOUD": "true",
    "APP_PASSWORD": "p",
}
BROKEN = {
    "APP_NAME": ("",),
    "APP_RETRIES": ("", "x", "-1", "1.5"),
    "APP_WAIT_S": ("x", "nan", "1 s"),
    "APP_IS_LOUD": ("x", "2"),
    "APP_PASSWORD": ("", "   "),
}
UNKNOWN = ("APP_RETRY", "APP_NAMES", "APP_", "APP_QQQQQQQQ")

broken_values = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(values) for name, values in BROKEN.items()}
)
unknown_names = st.sets(st.sampled_from(UNKNOWN))


@given(broken=broken_values, unknown=unknown_names)
def test_any_subset_of_broken_values_is_reported_completely(
    broken: dict[str, str], unknown: set[str]
) -> None:
    environment = {**GOOD, **broken, **dict.fromkeys(unknown, "x")}
    reported: list[str] = []
    try:
        read(Settings, environment, prefix="APP")
    except SettingsError as error:
        reported = [problem.split()[0] for problem in error.problems]

    assert sorted(reported) == sorted([*broken, *unknown])
