import pytest

from parley.cli import machine
from parley.cli.sandbox_probe import SandboxOffer, probe_sandbox


def offer(**changes: bool | int) -> SandboxOffer:
    everything: dict[str, bool | int] = {
        "has_bubblewrap": True,
        "is_bubblewrap_working": True,
        "has_user_namespaces": True,
        "landlock_abi": 7,
        "is_root": False,
    }
    return SandboxOffer(**(everything | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "level", "missing"),
    [
        (offer(), "ns", ()),
        (
            offer(has_bubblewrap=False, is_bubblewrap_working=False),
            "landlock",
            ("bubblewrap is not installed",),
        ),
        (
            offer(is_bubblewrap_working=False, has_user_namespaces=False, landlock_abi=0),
            "none",
            (
                "bubblewrap may not make namespaces here",
                "user namespaces are not allowed (seccomp or sysctl)",
                "this kernel has no Landlock (5.13 or newer has)",
            ),
        ),
        (
            offer(has_bubblewrap=False, is_bubblewrap_working=False, landlock_abi=0, is_root=True),
            "uid",
            ("bubblewrap is not installed", "this kernel has no Landlock (5.13 or newer has)"),
        ),
    ],
)
def test_the_sandbox_level_follows_from_what_is_there(
    found: SandboxOffer, level: str, missing: tuple[str, ...]
) -> None:
    assert (found.level, found.missing) == (level, missing)


def test_whatever_is_missing_says_what_that_costs() -> None:
    nothing = offer(is_bubblewrap_working=False, has_user_namespaces=False, landlock_abi=0)
    findings = (
        machine.find_bubblewrap(nothing),
        machine.find_sandbox(nothing),
        machine.find_user_namespaces(nothing),
        machine.find_browser("/nowhere"),
        machine.find_postgres(()),
    )
    assert all(finding.cost and not finding.is_there for finding in findings)


def test_the_probe_answers_on_this_machine() -> None:
    assert probe_sandbox("/nowhere").has_bubblewrap is False
