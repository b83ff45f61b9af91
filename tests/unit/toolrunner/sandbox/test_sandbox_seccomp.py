"""The filter is run here instruction by instruction, for both kinds of machine."""

import errno
import json
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from toolrunner.sandbox import seccomp
from toolrunner.sandbox.seccomp import ALLOW, KILL_PROCESS, FilterOptions, program, refusal
from toolrunner.sandbox.syscalls import NUMBERS

CLOSED = FilterOptions(has_paths=False, has_tcp=False, has_udp=False)
PROXY = FilterOptions(has_paths=False, has_tcp=True, has_udp=False)
APART = FilterOptions(has_paths=True, has_tcp=True, has_udp=True)
MACHINES = ("x86_64", "aarch64")


def verdict(filter: bytes, machine: str, number: int, *arguments: int, arch: int = 0) -> int:
    """Run a filter over a call."""
    words = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("=iIQ6Q", number, arch or seccomp.ARCHITECTURES[machine], 0, *words)
    code = [struct.unpack_from("=HBBI", filter, at) for at in range(0, len(filter), 8)]
    place = accumulator = 0
    while True:
        kind, if_true, if_false, value = code[place]
        place += 1
        match kind:
            case 0x20:
                accumulator = struct.unpack_from("=I", data, value)[0]
            case 0x54:
                accumulator &= value
            case 0x06:
                return int(value)
            case 0x15:
                place += if_true if accumulator == value else if_false
            case 0x35:
                place += if_true if accumulator >= value else if_false
            case 0x45:
                place += if_true if accumulator & value else if_false


def asked(machine: str, sockets: FilterOptions, name: str, *arguments: int) -> int:
    number = NUMBERS[name][MACHINES.index(machine)]
    return verdict(program(sockets, machine), machine, number, *arguments)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", seccomp.REFUSED)
def test_a_dangerous_call_is_refused(machine: str, name: str) -> None:
    if NUMBERS[name][MACHINES.index(machine)] >= 0:
        assert asked(machine, APART, name) == refusal(errno.EPERM)


@pytest.mark.parametrize("machine", MACHINES)
def test_all_other_calls_are_allowed(machine: str) -> None:
    filter = program(CLOSED, machine)
    looked_at = {numbers[MACHINES.index(machine)] for numbers in NUMBERS.values()}
    others = set(range(470)) - looked_at
    assert {verdict(filter, machine, number) for number in others} == {ALLOW}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("flag", [1 << bit for bit in (17, *range(25, 31))])
def test_clone_makes_processes_and_no_namespaces(machine: str, flag: int) -> None:
    assert asked(machine, APART, "clone", 17) == ALLOW
    assert asked(machine, APART, "clone", 17 | flag) == refusal(errno.EPERM)
    assert asked(machine, APART, "clone3") == refusal(errno.ENOSYS)


def test_calls_of_another_kind_of_machine_are_not_made() -> None:
    filter = program(APART, "x86_64")
    assert verdict(filter, "x86_64", 39, arch=0x40000003) == KILL_PROCESS
    assert verdict(filter, "x86_64", 0x40000000 | 39) == refusal(errno.ENOSYS)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_terminal_cannot_be_typed_into(machine: str) -> None:
    assert asked(machine, APART, "ioctl", 0, 0x5412) == refusal(errno.EPERM)
    assert asked(machine, APART, "ioctl", 0, 0x5413) == ALLOW


UNIX, IP, IP6, NETLINK, PACKET, VSOCK = 1, 2, 10, 16, 17, 40
STREAM, DATAGRAM, RAW = 1, 2, 3
CLOEXEC = 0o2000000


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("sockets", "family", "kind", "protocol", "is_allowed"),
    [
        (CLOSED, UNIX, STREAM, 0, False),
        (CLOSED, IP, STREAM, 0, False),
        (CLOSED, IP6, DATAGRAM, 0, False),
        (PROXY, IP, STREAM | CLOEXEC, 6, True),
        (PROXY, IP6, STREAM, 0, True),
        (PROXY, IP, STREAM, 262, False),  # Several paths at once, which Landlock does not see.
        (PROXY, IP, STREAM, 132, False),
        (PROXY, IP, DATAGRAM, 0, False),
        (PROXY, UNIX, STREAM, 0, False),
        (APART, UNIX, STREAM, 0, True),
        (APART, UNIX, DATAGRAM, 0, True),
        (APART, IP, DATAGRAM, 17, True),
        (APART, IP, RAW, 1, False),
        (APART, IP, DATAGRAM, 1, False),
        (APART, NETLINK, RAW, 0, False),
        (APART, PACKET, RAW, 0, False),
        (APART, VSOCK, STREAM, 0, False),
    ],
)
def test_only_sockets_that_are_confined_otherwise_can_be_made(
    machine: str, sockets: FilterOptions, family: int, kind: int, protocol: int, is_allowed: bool
) -> None:
    assert (asked(machine, sockets, "socket", family, kind, protocol) == ALLOW) is is_allowed


@pytest.mark.parametrize("machine", MACHINES)
def test_a_pair_of_sockets_that_could_be_turned_elsewhere_is_refused(machine: str) -> None:
    assert asked(machine, CLOSED, "socketpair", UNIX, STREAM) == ALLOW
    assert asked(machine, CLOSED, "socketpair", UNIX, DATAGRAM) == refusal(errno.EACCES)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("name", "place"), [("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)])
def test_sending_does_not_connect(machine: str, name: str, place: int) -> None:
    flags = [0] * place
    assert asked(machine, PROXY, name, *flags, seccomp.MSG_FASTOPEN) == refusal(errno.EPERM)
    assert asked(machine, PROXY, name, *flags, 0x4000) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("name", "place"), [("prlimit64", 0), ("setpriority", 1)])
def test_who_shares_a_user_changes_only_itself(machine: str, name: str, place: int) -> None:
    shared = replace(CLOSED, shares_user=True)
    others = [0] * place
    assert asked(machine, shared, name, *others, 1) == refusal(errno.EPERM)
    assert asked(machine, shared, name, *others, 0) == ALLOW
    assert asked(machine, CLOSED, name, *others, 1) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("name", "kinds", "of_the_user"), [("setpriority", (0, 1), 2), ("ioprio_set", (1, 2), 3)]
)
def test_who_shares_a_user_slows_down_only_itself(
    machine: str, name: str, kinds: tuple[int, ...], of_the_user: int
) -> None:
    shared = replace(CLOSED, shares_user=True)
    for kind in kinds:
        assert asked(machine, shared, name, kind, 0, 19) == ALLOW
        assert asked(machine, shared, name, kind, 1, 19) == refusal(errno.EPERM)
    for who in (0, 1000):
        assert asked(machine, shared, name, of_the_user, who, 19) == refusal(errno.EPERM)
        assert asked(machine, CLOSED, name, of_the_user, who, 19) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", seccomp.WATCHES)
def test_directories_are_not_watched_where_names_are_kept(machine: str, name: str) -> None:
    if NUMBERS[name][MACHINES.index(machine)] >= 0:
        kept = replace(CLOSED, keeps_names=True)
        assert asked(machine, kept, name) == refusal(errno.ENOSYS)
        assert asked(machine, CLOSED, name) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("is_shared", [False, True])
def test_the_mark_of_a_workspace_is_read_and_not_changed(machine: str, is_shared: bool) -> None:
    kept = replace(CLOSED, keeps_mark=True, shares_user=is_shared)
    mark, other = seccomp.RLIMIT_LOCKS, 7
    assert asked(machine, kept, "setrlimit", mark, 1) == refusal(errno.EPERM)
    assert asked(machine, kept, "setrlimit", other, 1) == ALLOW
    for pointer in (1, 1 << 32):
        assert asked(machine, kept, "prlimit64", 0, mark, pointer) == refusal(errno.EPERM)
        assert asked(machine, kept, "prlimit64", 0, other, pointer) == ALLOW
        assert asked(machine, CLOSED, "prlimit64", 0, mark, pointer) == ALLOW
    assert asked(machine, kept, "prlimit64", 0, mark, 0, 1) == ALLOW
    others = refusal(errno.EPERM) if is_shared else ALLOW
    assert asked(machine, kept, "prlimit64", 1, other, 0, 1) == others


@pytest.mark.parametrize("machine", MACHINES)
def test_hiding_from_the_service_succeeds_and_does_nothing(machine: str) -> None:
    visible = replace(CLOSED, stays_visible=True)
    assert asked(machine, visible, "prctl", 4, 0) == refusal(0)
    assert asked(machine, visible, "prctl", 1, 9) == ALLOW
    assert asked(machine, CLOSED, "prctl", 4, 0) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", seccomp.ATTRIBUTES)
def test_attributes_of_files_are_kept_where_nothing_may_be_written(machine: str, name: str) -> None:
    if NUMBERS[name][MACHINES.index(machine)] >= 0:
        kept = replace(CLOSED, keeps_attributes=True)
        assert asked(machine, kept, name) == refusal(errno.EPERM)
        assert asked(machine, CLOSED, name) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_files_are_not_changed_through_descriptors_for_reading(machine: str) -> None:
    kept = replace(CLOSED, keeps_attributes=True)
    set_flags, enable_verity, make_subvolume, clone = 0x40086602, 0x40806685, 0x5000940E, 0x40049409
    window_size, bytes_waiting, inject = 0x5413, 0x541B, 0x5412
    for request in (set_flags, enable_verity, make_subvolume, clone):
        assert asked(machine, kept, "ioctl", 3, request) == refusal(errno.ENOTTY)
        assert asked(machine, CLOSED, "ioctl", 3, request) == ALLOW
    for request in (window_size, bytes_waiting):
        assert asked(machine, kept, "ioctl", 3, request) == ALLOW
    assert asked(machine, kept, "ioctl", 3, inject) == refusal(errno.EPERM)


@pytest.mark.parametrize("machine", MACHINES)
def test_files_are_not_truncated_where_landlock_does_not_see_it(machine: str) -> None:
    kept = replace(CLOSED, keeps_sizes=True)
    assert asked(machine, kept, "truncate", 1, 0) == refusal(errno.EPERM)
    assert asked(machine, CLOSED, "truncate", 1, 0) == ALLOW


def test_the_profile_for_containers_allows_what_a_node_needs_and_no_more() -> None:
    path = Path(__file__).parents[4] / "docs" / "seccomp.json"
    (refused,) = json.loads(path.read_text())["syscalls"]
    # To make cells and trees.
    mounts = {"mount", "umount2", "pivot_root", "open_tree", "move_mount", "mount_setattr"}
    needed = {"unshare", "setns", "sethostname", *mounts}
    assert (refused["action"], set(refused["names"])) == (
        "SCMP_ACT_ERRNO",
        set(seccomp.REFUSED) - needed,
    )


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", seccomp.SHARED_OBJECTS)
def test_objects_of_the_kernel_that_are_the_hosts_are_refused(machine: str, name: str) -> None:
    shared = replace(CLOSED, shares_objects=True)
    assert asked(machine, shared, name) == refusal(errno.EPERM)
    assert asked(machine, CLOSED, name) == ALLOW
