"""A toolrunner with a sandbox: what it tells of it, what it refuses, and that all of it works."""

import asyncio
import errno
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from parley.api.workspace.v1 import sandbox_pb2
from support.toolrunner.files import Files
from support.toolrunner.node import Client, House, connected, node, toolrunner
from support.toolrunner.sandboxes import offered, sandbox_at, tell, told_line
from toolrunner.processes.rpc.convert import report_to_proto
from toolrunner.sandbox import Layer, Level
from toolrunner.sandbox.seccomp import ALLOW, ARCHITECTURES, refusal
from toolrunner.sandbox.syscalls import MACHINE, number_of

WITHIN_S = 30
SERVICES = Path(__file__).parents[4] / "services"


@pytest.fixture(params=offered(), ids=lambda level: level.word)
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Client]:
    house = replace(House.build(tmp_path), sandbox_level=request.param.word)
    async with node(house), connected(house) as client:
        yield client


async def test_a_process_tells_how_it_is_confined(client: Client) -> None:
    ran = await client.run("echo hi > made; cat made")
    used = ran.process.sandbox
    assert ran.output.text == "hi\n"
    assert used.level in (sandbox_pb2.SANDBOX_LEVEL_LANDLOCK, sandbox_pb2.SANDBOX_LEVEL_NS)
    assert sandbox_pb2.SANDBOX_LAYER_SECCOMP in used.layers
    assert used.network == sandbox_pb2.NETWORK_ACCESS_NONE
    assert (await client.get(ran.process.process_id)).sandbox == used


async def test_files_and_commands_work_on_the_same_files(client: Client) -> None:
    files = Files(client, Path())
    await client.run("echo made by a command > one")
    await files.write("two", b"made by the file program\n")
    read = await files.read("one")
    ran = await client.run("cat one two; rm one two && echo gone")
    assert "made by a command" in str(read)
    assert ran.output.text == "made by a command\nmade by the file program\ngone\n"


async def test_a_command_reads_the_log_of_another(client: Client) -> None:
    first = await client.run("seq 100000")
    path = first.process.log_path
    assert (await client.run(f"head -1 {path}; wc -l < {path}")).output.text == "1\n100000\n"


async def test_a_read_only_call_changes_nothing(client: Client) -> None:
    client.context.profile = sandbox_pb2.SANDBOX_PROFILE_READ_ONLY
    ran = await client.run("touch made; ls")
    assert "made" not in ran.output.text.splitlines()
    assert ran.process.sandbox.profile == sandbox_pb2.SANDBOX_PROFILE_READ_ONLY


async def test_the_file_program_believes_nothing_that_lies_in_a_workspace(client: Client) -> None:
    for name in ("sitecustomize.py", "usercustomize.py", "msgspec.py", "toolrunner/__init__.py"):
        script = f'mkdir -p $(dirname {name}); echo \'open("hacked", "w")\' > {name}'
        await client.run(f"{script}; cp {name} $HOME/ 2>/dev/null; true")
    hostile = "echo 'touch hacked' > rg; chmod +x rg; cp rg $HOME/.bashrc"
    await client.run(f"{hostile}; printf '[core]\\nfsmonitor = touch hacked\\n' > $HOME/.gitconfig")
    files = Files(client, Path())
    await files.write("one", b"text")
    await files.search("text")
    assert (await client.run("ls hacked")).process.exit.exit_code == 2


async def test_variables_of_a_call_reach_its_program_and_not_what_confines_it(
    client: Client,
) -> None:
    variables = {"LD_PRELOAD": "/nowhere/hostile.so", "PYTHONPATH": ".", "BASH_ENV": "./hostile"}
    ran = await client.run(
        "touch /usr/hacked; ls /root; echo end",
        environment={**variables, "TOOLRUNNER_LEVEL": "none"},
    )
    assert ran.output.text.splitlines()[-1] == "end"
    assert sandbox_pb2.SANDBOX_LAYER_LANDLOCK_FILES in ran.process.sandbox.layers
    assert "hacked" not in os.listdir("/usr")


def test_a_report_tells_what_is_missing_and_how_to_get_it() -> None:
    report = report_to_proto(sandbox_at(offered()[-1]).report)
    assert report.level == sandbox_pb2.SANDBOX_LEVEL_NS
    assert {each.layer for each in report.missing} >= {sandbox_pb2.SANDBOX_LAYER_VM}
    assert all(each.cause and each.effect and each.remedy for each in report.missing)
    assert "Sandbox level" in report.summary


@pytest.mark.parametrize("level", offered(), ids=lambda level: level.word)
async def test_a_node_that_runs_by_itself_confines_and_works(level: Level, tmp_path: Path) -> None:
    house = replace(House.build(tmp_path), sandbox_level=level.word)
    async with toolrunner(house), connected(house) as client:
        ran = await client.run("git init -q . && echo hi > /dev/null && ls -d .git $HOME /tmp /usr")
        files = Files(client, Path())
        await files.write("one", b"text")
        read = await client.run("cat one")
    assert (ran.process.exit.exit_code, ran.output.text.splitlines()[0]) == (0, ".git")
    assert read.output.text == "text"


async def test_a_node_below_its_minimum_does_not_start_and_says_why(tmp_path: Path) -> None:
    house = House.build(tmp_path)
    async with toolrunner(
        house, TOOLRUNNER_SANDBOX_LEVEL="uid", TOOLRUNNER_SANDBOX_MINIMUM="landlock"
    ) as process:
        assert process.stderr is not None
        async with asyncio.timeout(WITHIN_S):
            said = (await process.stderr.read()).decode()
            assert await process.wait() == 2
    assert 'below the minimum "landlock"' in said
    assert "TOOLRUNNER_SANDBOX_MINIMUM=" in said


def denying(*names: str) -> bytes:
    """Return a filter under which calls do not work, as in a container."""
    code = [(0x20, 0, 0, 4), (0x15, 1, 0, ARCHITECTURES[MACHINE]), (0x06, 0, 0, ALLOW)]
    code.append((0x20, 0, 0, 0))
    for name in names:
        code += [(0x15, 0, 1, number_of(name)), (0x06, 0, 0, refusal(errno.EPERM))]
    code.append((0x06, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *each) for each in code)


UNDER_A_FILTER = """
import sys
sys.path.append(sys.argv[1])
from toolrunner.sandbox import seccomp, syscalls
syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
seccomp.install(bytes.fromhex(sys.argv[2]))
import os
os.execv(sys.executable, [sys.executable, *sys.argv[3:]])
"""


@pytest.mark.parametrize(
    ("denied", "level", "words"),
    [
        (("unshare", "clone3"), "landlock", "a seccomp profile or a security module denies"),
        (("unshare", "landlock_create_ruleset"), None, "a seccomp profile denies the calls of"),
    ],
)
def test_e24_a_layer_that_a_container_denies_is_told_and_the_minimum_kept(
    denied: tuple[str, ...], level: str | None, words: str, tmp_path: Path
) -> None:
    script = (
        "import sys; sys.path.append(sys.argv[1])\n"
        "from pathlib import Path\n"
        "from toolrunner.directories.users import DEFAULT_RANGE\n"
        "from toolrunner.processes.node_sandbox import find_sandbox\n"
        "from toolrunner.sandbox import BelowMinimum, Level\n"
        "try:\n"
        "    directory, minimum = Path(sys.argv[2]), Level.LANDLOCK\n"
        "    found = find_sandbox(directory, DEFAULT_RANGE, minimum=minimum, forced=None)\n"
        "    print(found.report.level.word, found.report.summary)\n"
        "except BelowMinimum as error:\n"
        "    print('refused', error)\n"
    )
    wrapped = [sys.executable, "-c", UNDER_A_FILTER, str(SERVICES), denying(*denied).hex()]
    ended = subprocess.run(
        [*wrapped, "-c", script, str(SERVICES), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    is_weaker = ended.stdout.split()[0] != (level or "refused") or words not in ended.stdout
    print(told_line("E24", level or "none", int(is_weaker), 1))
    assert ended.stdout.split()[0] == (level or "refused")
    assert words in ended.stdout


AS_ANOTHER_USER = """
import asyncio, json, sys
sys.path[:0] = json.loads(sys.argv[1])
from pathlib import Path
from support.toolrunner import attacks
from support.toolrunner.jail import Jail
from toolrunner.sandbox import Level

async def main():
    directory, level, victim = Path(sys.argv[2]), Level[sys.argv[3]], sys.argv[4]
    other = directory / "not-mine"
    other.write_text("hunter2")
    targets = {"read": [str(other), "/etc/shadow", str(directory)], "write": [str(other)],
               "make": [str(directory)]}
    # At landlock that counts as none; what Landlock governs is kept all the same.
    async with Jail.opened(directory, level, minimum=Level.NONE) as jail:
        read = await jail.python(attacks.READING, json.dumps(targets))
        called = await jail.python(attacks.CALLING, json.dumps({"victim": [int(victim)]}))
        made = await jail.shell("echo hi > made; cat made; id -u")
        print(json.dumps([read.text, called.text, made.text, list(map(int, made.layers))]))

asyncio.run(main())
"""
NOBODY = 65534


@pytest.mark.skipif(
    os.geteuid() != 0 or not os.path.realpath(sys.executable).startswith("/usr/"),
    reason="needs root, to become somebody else, and a Python that everybody can run",
)
@pytest.mark.parametrize("level", offered(), ids=lambda level: level.word)
def test_an_ordinary_user_confines_as_well(level: Level, tmp_path: Path) -> None:
    directory = Path(tempfile.mkdtemp(prefix="parley-nobody-"))
    try:
        os.chown(directory, NOBODY, NOBODY)
        paths = [str(SERVICES), str(SERVICES.parent / "libs"), str(SERVICES.parent / "tests")]
        ended = subprocess.run(
            [
                *(sys.executable, "-c", AS_ANOTHER_USER, json.dumps(paths)),
                *(str(directory), level.name, str(os.getpid())),
            ],
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        read, called, made, layers = json.loads(ended.stdout)
        assert (directory / "not-mine").read_text() == "hunter2"
        assert not (directory / "hacked").exists()
    finally:
        shutil.rmtree(directory)
    bare = ["[]", "['workspaces']"]
    if level is Level.NS:
        # Below a /tmp of its own it owns the way to its files; the host's has nothing of it.
        bare += ["made", "written"]
    tried = {**json.loads(read), **json.loads(called)}
    successes = {
        name: detail
        for name, (is_success, detail) in tried.items()
        if is_success and detail not in bare
    }
    tell("E10, E18, E19 as nobody", level, len(successes), len(tried))
    assert successes == {}
    assert made == f"hi\n{NOBODY}\n"
    assert Layer.UID not in layers
