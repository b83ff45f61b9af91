from dataclasses import replace
from pathlib import Path

import pytest

from parley.cli.host import checks as machine
from parley.cli.host.sandbox_probe import MissingLayer, SandboxCapabilities, probe_sandbox

NO_NAMESPACES = MissingLayer("user namespace", "seccomp denies it", "no level ns", "allow it")
OFFER = SandboxCapabilities("ns", "6.18", 7, ("seccomp",), ())
WEAK = SandboxCapabilities("uid", "5.10", 0, (), (NO_NAMESPACES,))


@pytest.mark.parametrize(
    ("level", "is_enough"), [("ns", True), ("landlock", True), ("uid", False), ("none", False)]
)
def test_a_level_is_enough_from_landlock_on(level: str, is_enough: bool) -> None:
    found = machine.find_sandbox(replace(OFFER, level=level))
    assert (found.is_there, bool(found.cost)) == (is_enough, not is_enough)


def test_a_missing_layer_is_shown_with_cause_effect_and_remedy() -> None:
    assert machine.find_layers(WEAK) == (
        machine.Finding(
            "user namespace", False, "seccomp denies it", "no level ns. To have it: allow it"
        ),
    )


def test_whatever_is_missing_says_what_that_costs() -> None:
    findings = (
        machine.find_sandbox(WEAK),
        *machine.find_layers(WEAK),
        machine.find_browser("/nowhere"),
        machine.find_postgres(()),
    )
    assert all(finding.cost and not finding.is_there for finding in findings)


def test_the_newest_postgresql_is_named_as_the_one_for_new_homes() -> None:
    assert machine.find_postgres((16,)).detail == "embedded, version 16"
    assert machine.find_postgres((16, 18)).detail == "embedded, version 18 (16 for older homes)"


@pytest.mark.parametrize(("hard", "is_enough"), [(1024, False), (65_536, True)])
def test_few_open_files_are_told_with_what_they_allow(hard: int, is_enough: bool) -> None:
    found = machine.find_open_files(hard)
    assert (found.is_there, bool(found.cost)) == (is_enough, not is_enough)
    # Nothing of commands: their limit depends on the shell and settings of the start.
    assert found.detail == (
        f"{hard} for a service started from here, enough for {hard - 320} connections"
    )


def test_the_probe_answers_on_this_machine(tmp_path: Path) -> None:
    offer = probe_sandbox(tmp_path / "not" / "there")
    assert offer.kernel
    assert all(each.cause and each.effect and each.remedy for each in offer.missing)
