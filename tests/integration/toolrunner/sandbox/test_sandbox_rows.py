"""Rows E15 and E20 with a hostile command inside and the node's own programs outside of it."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from parley.api.workspace.v1 import git_service_pb2, process_pb2, sandbox_pb2
from parley.rpc import problem_of
from support.session.row_sizes import RowSizes
from support.toolrunner.files import Files
from support.toolrunner.node import Client, House, connected, node
from support.toolrunner.sandboxes import offered, tell
from toolrunner.sandbox import Level

SECRET = "hunter2-secret"
WITHIN_S = 120
TRIES = 400
#: That many at least, on a machine with much else to do.
SWAPS_PER_S = 1_000

#: Puts a way out in the place of a directory and of a file, again and again.
SWAPPER = """
exec python3 -I -S -c '
import ctypes, os, sys
libc = ctypes.CDLL(None)
outside, wanted = sys.argv[1], int(sys.argv[2])
os.mkdir("inside"); open("inside/f", "w").write("mine")
os.symlink(outside, "link"); os.rename("inside", "way")
open("plain", "w").write("mine"); os.symlink(outside + "/f", "out"); os.rename("plain", "file")
print("ready", flush=True)
number = 0
while number < wanted or not os.path.exists("stop"):
    number += 2
    for name, other in (("way", "link"), ("file", "out")):
        libc.renameat2(-100, name.encode(), -100, other.encode(), 2)
    if number == wanted: print("enough", flush=True)
print("done", number, flush=True)
' {outside} {wanted}
"""


@pytest.fixture(params=offered(), ids=lambda level: level.word)
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> House:
    level: Level = request.param
    directory = tmp_path_factory.mktemp("s")
    for path in (directory, *directory.parents[:2]):
        path.chmod(0o711)
    return replace(House.build(directory), sandbox_level=level.word)


@pytest.fixture
async def client(house: House) -> AsyncIterator[Client]:
    async with node(house), connected(house) as client:
        yield client


async def test_e15_a_link_that_a_command_swaps_in_leads_the_node_nowhere(
    client: Client, house: House, tmp_path: Path, pytestconfig: pytest.Config, sizes: RowSizes
) -> None:
    wanted: int = pytestconfig.getoption("--swaps", None) or sizes.swaps
    within_s = WITHIN_S + wanted // SWAPS_PER_S
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o777)
    outside.chmod(0o777)
    (outside / "f").write_text(SECRET)
    (outside / "f").chmod(0o666)
    files = Files(client, Path())
    started = await client.start(SWAPPER.format(outside=outside, wanted=wanted))
    process_id = started.process.process_id
    await client.wait(process_id, process_pb2.WAIT_UNTIL_MATCH, pattern="ready")
    told: Counter[str] = Counter()
    escapes = 0
    async with asyncio.timeout(within_s), asyncio.TaskGroup() as tasks:
        enough = tasks.create_task(said(client, process_id, "enough"))
        while told.total() < TRIES or not enough.done():
            for path in ("way/f", "file"):
                for call in (files.read(path), files.write(path, b"mine")):
                    try:
                        answer = str(await call)
                        told["inside"] += 1
                    except grpc.aio.AioRpcError as error:
                        answer = str(error)
                        told[problem_of(error).reason] += 1
                    escapes += SECRET in answer
    await client.run("touch stop")
    ended = await client.wait(process_id, max_wait_ms=WITHIN_S * 1000)
    is_changed = (outside / "f").read_text() != SECRET or len([*outside.iterdir()]) != 1
    print(ended.output.text)
    assert ended.output.text.splitlines()[-1].startswith("done")
    tell("E15", Level[house.sandbox_level.upper()], escapes + is_changed, told.total())
    assert (escapes, is_changed) == (0, False)
    # The race was real: both sides of it were met.
    assert {"inside", "OUTSIDE_WORKSPACE"} <= set(told)


async def said(client: Client, process_id: str, pattern: str) -> None:
    """Return when a process has printed something, however long that takes."""
    reason = process_pb2.WAIT_REASON_TIMEOUT
    while reason == process_pb2.WAIT_REASON_TIMEOUT:
        waited = await client.wait(
            process_id,
            process_pb2.WAIT_UNTIL_MATCH,
            pattern=pattern,
            max_wait_ms=WITHIN_S * 1000,
        )
        reason = waited.reason


#: Each leaves a mark in the workspace if somebody reads it.
TRAPS = {
    "$HOME/.bashrc": "touch {mark}",
    "$HOME/.bash_profile": "touch {mark}",
    "$HOME/.profile": "touch {mark}",
    "$HOME/.ripgreprc": "--pre=touch {mark}",
    "$HOME/.gitconfig": "[core]\n\tfsmonitor = touch {mark}\n\tpager = touch {mark}",
    "$HOME/.config/git/config": "[core]\n\tfsmonitor = touch {mark}",
    ".gitconfig": "[core]\n\tfsmonitor = touch {mark}",
    ".git/hooks/post-checkout": "#!/bin/sh\ntouch {mark}",
    ".git/hooks/pre-commit": "#!/bin/sh\ntouch {mark}",
    ".git/hooks/reference-transaction": "#!/bin/sh\ntouch {mark}",
    ".git/hooks/fsmonitor-watchman": "#!/bin/sh\ntouch {mark}",
    "hooks/post-index-change": "#!/bin/sh\ntouch {mark}",
    ".gitattributes": "* filter=evil diff=evil",
    "rg": "#!/bin/sh\ntouch {mark}",
    "git": "#!/bin/sh\ntouch {mark}",
    "sitecustomize.py": "open('{mark}', 'w')",
    "usercustomize.py": "open('{mark}', 'w')",
    "msgspec.py": "open('{mark}', 'w')",
    "toolrunner/__init__.py": "open('{mark}', 'w')",
    "$HOME/.local/bin/git": "#!/bin/sh\ntouch {mark}",
    "$HOME/.pdbrc": "open('{mark}', 'w')",
    ".env": "BASH_ENV=./evil",
}
CONFIG = (
    "git config core.fsmonitor 'touch {mark}'; git config core.hooksPath hooks; "
    "git config filter.evil.clean 'touch {mark}'; git config filter.evil.smudge 'touch {mark}'; "
    "git config diff.evil.command 'touch {mark}'; git config diff.evil.textconv 'touch {mark}'; "
    "git config core.sshCommand 'touch {mark}'; git config core.pager 'touch {mark}'"
)


async def test_e20_nothing_that_lies_in_a_workspace_is_run_by_the_node(
    client: Client, house: House
) -> None:
    own = house.data / "workspaces" / client.context.workspace_id
    client.context.profile = sandbox_pb2.SANDBOX_PROFILE_FULL
    mark = own / "files" / "hacked"
    await client.run("git init -q . && git config user.email t@t && git config user.name t")
    await client.run("echo text > one && git add one && git commit -qm one")
    for path, text in TRAPS.items():
        script = f'mkdir -p "$(dirname {path})"; cat > {path}; chmod +x {path}'
        await client.run(script, stdin=text.format(mark=mark).encode())
    await client.run(CONFIG.format(mark=mark))
    await client.run("rm -f hacked; echo more >> one")
    files = Files(client, Path())
    await files.write("two", b"text")
    await files.search("text")
    await files.edit(("two", "text", "changed"))
    context = client.context
    status = await client.git.GetStatus(git_service_pb2.GetStatusRequest(context=context))
    await client.git.CreateCheckpoint(
        git_service_pb2.CreateCheckpointRequest(
            context=context, request_id=client.new_id(), label="kept"
        )
    )
    variables = {"LD_PRELOAD": "./evil.so", "PATH": f"{own}/files:/usr/bin:/bin", "ENV": ".env"}
    plain = await client.run("true", environment=variables)
    tell("E20", Level[house.sandbox_level.upper()], int(mark.exists()), len(TRAPS) + 8)
    assert status.repositories
    assert plain.process.state == process_pb2.PROCESS_STATE_EXITED
    assert not mark.exists()
