"""Runs inside of a sandbox and tries to read and write what is not its own.

Gets JSON of paths to read and to write; prints JSON of what came of each.
"""

import json
import os
import sys

TARGETS = json.loads(sys.argv[1])


def read(path: str) -> str:
    if os.path.isdir(path):
        return repr(os.listdir(path)[:3])
    with open(path, "rb") as file:
        return repr(file.read(40))


def through_link(path: str) -> str:
    os.symlink(path, "a-link")
    try:
        return read("a-link")
    finally:
        os.unlink("a-link")


def through_hard_link(path: str) -> str:
    os.link(path, "a-hard-link")
    return read("a-hard-link")


def through_own_root(path: str) -> str:
    return read(f"/proc/self/root{path}")


def through_a_mount(path: str) -> str:
    return read(f"/proc/1/root{path}")


def write(path: str) -> str:
    with open(path, "ab") as file:
        file.write(b"hacked")
    return "written"


def make(path: str) -> str:
    os.mkdir(f"{path}/hacked")
    return "made"


def rename(path: str) -> str:
    with open("bait", "w") as file:
        file.write("hacked")
    os.rename("bait", f"{path}/bait")
    return "moved"


def main() -> None:
    told = {}
    ways = {
        "read": (read, through_link, through_hard_link, through_own_root, through_a_mount),
        "write": (write,),
        "make": (make, rename),
    }
    for kind, functions in ways.items():
        for path in TARGETS[kind]:
            for function in functions:
                name = f"{function.__name__} {path}"
                try:
                    told[name] = [True, function(path)]
                except OSError as error:
                    told[name] = [False, os.strerror(error.errno or 0)]
    print(json.dumps(told))


main()
