"""The control groups that this process belongs to."""

from contextlib import suppress

#: The controllers that limits need.
CONTROLLERS = frozenset({"memory", "pids", "cpu"})


def own_group() -> str:
    """Return the directory of this process's group in the unified hierarchy.

    Raises:
        OSError: There is none.
    """
    with open("/proc/self/cgroup") as file:
        own = [line.rstrip("\n")[3:] for line in file if line.startswith("0::")]
    with open("/proc/self/mountinfo") as file:
        mounts = [line.split() for line in file if " - cgroup2 " in line]
    if not own or not mounts:
        raise OSError("no unified hierarchy of control groups")
    return mounts[0][4] + own[0].rstrip("/")


def found_groups() -> dict[str, str]:
    """Return the cgroup v1 directories of this process, by controller."""
    places: dict[str, str] = {}
    with suppress(OSError), open("/proc/self/mountinfo") as file:
        for line in file:
            mount, _, source = line.rstrip("\n").partition(" - ")
            kind, _, options = source.split(" ", 2)
            if kind == "cgroup":
                for controller in CONTROLLERS & {*options.split(",")}:
                    places[controller] = mount.split()[4]
    found: dict[str, str] = {}
    with suppress(OSError), open("/proc/self/cgroup") as file:
        for line in file:
            _, names, path = line.rstrip("\n").split(":", 2)
            for controller in {*names.split(",")} & {*places}:
                found[controller] = places[controller] + path.rstrip("/")
    return found
