import signal
import subprocess

from toolrunner.sandbox import Confinement
from toolrunner.sandbox.namespaces import (
    IDLE_MAX,
    IDLE_S,
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
        namespace_sets = NamespaceSets({Key("w1", Network.OPEN, None): NamespaceSet(first.pid, ())})
        namespace_sets.rest("w1", 100.0)
        assert namespace_sets.end_rested(100.0 + IDLE_S - 1) == 100.0 + IDLE_S
        assert (first.poll(), namespace_sets.firsts) == (None, {first.pid})
        assert namespace_sets.end_rested(100.0 + IDLE_S) is None
        assert (first.wait(5), namespace_sets.firsts) == (-signal.SIGKILL, set())


def test_of_many_cells_without_anybody_the_longest_empty_goes() -> None:
    with holding() as first, holding() as last:
        namespace_sets = NamespaceSets(
            {
                Key("w0", Network.OPEN, None): NamespaceSet(first.pid, ()),
                Key("last", Network.NONE, None): NamespaceSet(last.pid, ()),
            }
        )
        namespace_sets.rest("w0", 0.0)
        namespace_sets.idle |= {f"w{number}": float(number) for number in range(1, IDLE_MAX)}
        namespace_sets.rest("last", 100.0)
        assert len(namespace_sets.idle) == IDLE_MAX
        assert (first.wait(5), last.poll()) == (-signal.SIGKILL, None)
        namespace_sets.end_all()
        assert last.wait(5) == -signal.SIGKILL


def test_a_workspace_without_cells_does_not_rest() -> None:
    namespace_sets = NamespaceSets()
    namespace_sets.rest("w1", 1.0)
    assert (namespace_sets.idle, namespace_sets.end_rested(1000.0)) == ({}, None)


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


def test_who_may_only_read_shares_no_cell_with_who_may_write() -> None:
    assert key_of("w", confined(Profile.READ_ONLY)) != key_of("w", confined(Profile.FULL))
    kept_apart = [
        key_of("w", confined(profile, Layer.LANDLOCK_FILES))
        for profile in (Profile.READ_ONLY, Profile.WORKSPACE_WRITE, Profile.FULL)
    ]
    assert kept_apart == [
        Key("w", Network.NONE, Profile.READ_ONLY),
        *[Key("w", Network.NONE, None)] * 2,
    ]
