import signal
import subprocess

from toolrunner.sandbox import Confinement
from toolrunner.sandbox.namespaces import (
    RESTING_MAX,
    RESTING_S,
    Key,
    NamespaceSet,
    NamespaceSets,
    key_of,
)
from toolrunner.sandbox.values import Layer, Level, Network, Profile


def holding() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sleep", "7901"], start_new_session=True)


def test_a_cell_without_anybody_is_kept_for_a_while() -> None:
    with holding() as first:
        cells = NamespaceSets({Key("w1", Network.OPEN, None): NamespaceSet(first.pid, ())})
        cells.rest("w1", 100.0)
        assert cells.end_rested(100.0 + RESTING_S - 1) == 100.0 + RESTING_S
        assert (first.poll(), cells.firsts) == (None, {first.pid})
        assert cells.end_rested(100.0 + RESTING_S) is None
        assert (first.wait(5), cells.firsts) == (-signal.SIGKILL, set())


def test_of_many_cells_without_anybody_the_longest_empty_goes() -> None:
    with holding() as first, holding() as last:
        cells = NamespaceSets(
            {
                Key("w0", Network.OPEN, None): NamespaceSet(first.pid, ()),
                Key("last", Network.NONE, None): NamespaceSet(last.pid, ()),
            }
        )
        cells.rest("w0", 0.0)
        cells.resting |= {f"w{number}": float(number) for number in range(1, RESTING_MAX)}
        cells.rest("last", 100.0)
        assert len(cells.resting) == RESTING_MAX
        assert (first.wait(5), last.poll()) == (-signal.SIGKILL, None)
        cells.end_all()
        assert last.wait(5) == -signal.SIGKILL


def test_a_workspace_without_cells_does_not_rest() -> None:
    cells = NamespaceSets()
    cells.rest("w1", 1.0)
    assert (cells.resting, cells.end_rested(1000.0)) == ({}, None)


def confined(profile: Profile, *layers: Layer) -> Confinement:
    return Confinement(
        level=Level.NS,
        layers=layers,
        profile=profile,
        network=Network.NONE,
        root="/w/files",
        home="/w/home",
        temporary="/w/tmp",
    )


def test_without_landlock_who_may_only_read_shares_no_cell_with_who_may_write() -> None:
    assert key_of("w", confined(Profile.READ_ONLY)) != key_of("w", confined(Profile.FULL))
    kept_apart = [
        key_of("w", confined(profile, Layer.LANDLOCK_FILES))
        for profile in (Profile.READ_ONLY, Profile.FULL)
    ]
    assert kept_apart == [Key("w", Network.NONE, None)] * 2
