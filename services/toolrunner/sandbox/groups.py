"""Where this process stands among control groups."""


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
