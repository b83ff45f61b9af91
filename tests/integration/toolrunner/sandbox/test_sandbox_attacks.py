"""Hostile programs in a sandbox, at every level that this machine offers; each gets nothing."""

import asyncio
import json
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.toolrunner import attacks
from support.toolrunner.jail import PYTHON, Jail
from support.toolrunner.sandboxes import judged, offered, sandbox_at, tell
from support.toolrunner.victims import SECRET, Service, service
from toolrunner.sandbox import PROXY_PORT, Egress, Layer, Level, Network, Profile

IS_ROOT = os.geteuid() == 0
THIS = Path(__file__).name


@pytest.fixture
def directory() -> Iterator[Path]:
    # Not pytest's own: users of workspaces must be able to walk to it.
    path = Path(tempfile.mkdtemp(prefix="parley-jail-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)


@pytest.fixture(params=offered(), ids=lambda level: level.word)
async def jail(request: pytest.FixtureRequest, directory: Path) -> AsyncIterator[Jail]:
    async with Jail.opened(directory, request.param) as opened:
        yield opened


@pytest.fixture
async def victim(directory: Path) -> AsyncIterator[Service]:
    async with service(directory) as opened:
        yield opened


def test_both_levels_were_attacked(request: pytest.FixtureRequest) -> None:
    report = sandbox_at(Level.NONE).report
    if not IS_ROOT:
        pytest.skip("without a user of its own for each workspace, landlock does not isolate")
    assert offered() == (Level.LANDLOCK, Level.NS), report.summary
    attacked: dict[str, set[str]] = {}
    for item in request.session.items:
        if isinstance(item, pytest.Function) and "jail" in item.fixturenames:
            level = {"landlock", "ns"} & set(item.name.partition("[")[2].rstrip("]").split("-"))
            attacked.setdefault(f"{item.path.name}: {item.originalname}", set()).update(level)
    # Of each attack that is run, at both: nobody took a level out.
    here = {name: levels for name, levels in attacked.items() if name.startswith(THIS)}
    assert {name for name, levels in here.items() if levels != {"landlock", "ns"}} == set()


@pytest.mark.skipif(not IS_ROOT, reason="what belongs to the same user can be changed at landlock")
async def test_e10_the_attributes_of_nothing_of_others_are_changed(jail: Jail) -> None:
    other = jail.put("secret", SECRET, workspace="w2", mode=0o666)
    private = jail.directory / "private"
    private.write_text(SECRET)
    targets = [str(other), str(private), str(jail.directory), "/usr", "/etc/passwd", "/root"]
    before = [attacks.attributes(path) for path in targets]
    ran = await jail.python(attacks.CHANGING, json.dumps(targets))
    assert judged("E10, attributes", jail.level, ran.text) == {}
    assert [attacks.attributes(path) for path in targets] == before


async def test_e10_no_directory_of_others_is_watched(jail: Jail) -> None:
    other = jail.workspace("w2")
    keys = jail.directory / "keys"
    keys.mkdir(mode=0o700)
    private = (jail.directory, jail.directory / "workspaces", keys, jail.workspace().undo)
    own = (other.directory, other.root, other.home, other.temporary, other.logs, other.undo)
    targets = [str(path) for path in (*private, *own)]
    if jail.level is Level.LANDLOCK:
        # Open to everybody, and still none of the workspace's.
        targets += ["/", "/etc", "/tmp", "/var", "/var/log", "/run", "/root", "/home"]
    ran = await jail.python(attacks.WATCHING, json.dumps(targets))
    told = json.loads(ran.text)
    if jail.level is Level.NS:
        # Directories of these names are the workspace's own there, and lead to its files.
        ways = {str(jail.directory), str(jail.directory / "workspaces")}
        told = {name: each for name, each in told.items() if name.split()[1] not in ways}
    assert judged("E10, watching", jail.level, json.dumps(told)) == {}


async def test_e10_nothing_of_others_is_read_or_written(jail: Jail, victim: Service) -> None:
    other = jail.put("secret", SECRET, workspace="w2", mode=0o666)
    private = jail.directory / "private"
    private.write_text(SECRET)
    private.chmod(0o644)
    logs = jail.workspace().logs
    targets = {
        "read": [
            str(other),
            str(other.parent.parent / "home"),
            str(private),
            str(jail.directory),
            str(jail.workspace().undo),
            str(Path.home()),
            "/root",
            "/etc/shadow",
            "/etc/ssh",
            "/etc/resolv.conf",
            "/var/log",
            "/var/lib",
            "/run",
            "/boot",
            "/sys/kernel",
            "/dev/mem",
            "/dev/kmsg",
            "/proc/kcore",
            "/proc/1/environ",
            "/proc/1/mem",
            f"/proc/{victim.pid}/environ",
            f"/proc/{victim.pid}/mem",
            f"/proc/{jail.spawner_pid}/environ",
            f"/proc/{jail.spawner_pid}/fd",
        ],
        "write": [
            str(other),
            str(private),
            "/etc/passwd",
            "/usr/bin/hacked",
            "/proc/sys/kernel/core_pattern",
            str(logs / "hacked"),
            str(jail.workspace().undo / "hacked"),
        ],
        "make": [str(other.parent), str(jail.directory), "/usr", "/", "/etc", str(logs)],
    }
    ran = await jail.python(attacks.READING, json.dumps(targets))
    told = json.loads(ran.text)
    if jail.level is Level.NS:
        # In a tree of its own there are directories of these names, with nothing in them but the
        # way to its own files.
        bare = ("[]", "['workspaces']", "['w1']")
        inside = {"read", "through_link", "through_own_root"}
        for name, (is_success, detail) in told.items():
            if is_success and detail in bare and name.split()[0] in inside:
                told[name] = (False, "nothing is in it")
    assert judged("E10", jail.level, json.dumps(told)) == {}
    assert other.read_text() == private.read_text() == SECRET


async def test_e11_and_e12_nothing_is_reached_over_a_network(jail: Jail, victim: Service) -> None:
    ran = await jail.python(attacks.CONNECTING, victim.addresses(), network=Network.NONE)
    assert judged("E11, E12", jail.level, ran.text) == {}
    assert victim.reached == []


ASK = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5) as each:
    each.sendall(b"hello")
    print(each.recv(20).decode())
"""


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        yield opened


async def test_e11_with_a_proxy_only_the_proxy_is_reached(
    jail: Jail, victim: Service, listening: socket.socket
) -> None:
    loop = asyncio.get_running_loop()
    outside = listening
    doors: asyncio.Queue[tuple[str, int]] = asyncio.Queue()
    jail.spawner.serve_listeners(
        lambda workspace, listener: doors.put_nowait((workspace, listener))
    )
    egress = Egress(outside.getsockname()[1])
    given = {"network": Network.PROXY, "egress": egress}
    # A cell, and its door, is there as long as somebody is inside.
    await jail.begin("sleep", "60", **given)
    ran = await jail.python(attacks.CONNECTING, victim.addresses(), **given)
    assert judged("E11 with a proxy", jail.level, ran.text) == {}
    assert victim.reached == []

    port, proxy = egress.port, outside
    if jail.level is Level.NS:
        workspace, listener = doors.get_nowait()
        assert workspace == "w1"
        port, proxy = PROXY_PORT, socket.socket(fileno=listener)
    proxy.setblocking(False)
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(jail.python(ASK, str(port), **given))
        accepted, _ = await loop.sock_accept(proxy)
        said = await loop.sock_recv(accepted, 20)
        await loop.sock_sendall(accepted, b"from the proxy")
        accepted.close()
    proxy.close()
    assert (said, (await asked).text) == (b"hello", "from the proxy\n")


async def test_e18_and_e19_no_dangerous_call_is_made_and_no_process_meddled_with(
    jail: Jail, victim: Service
) -> None:
    _, pid = await jail.begin("sleep", "60", workspace="w2")
    targets = json.dumps({"victim": [victim.pid, os.getpid(), jail.spawner_pid, pid]})
    ran = await jail.python(attacks.CALLING, targets)
    assert judged("E18, E19", jail.level, ran.text) == {}
    await jail.stop("w2")


@pytest.mark.skipif(not IS_ROOT, reason="only root makes programs that give rights away")
async def test_e9_no_program_gives_rights_away(jail: Jail) -> None:
    root = jail.workspace().root
    source = shutil.which("id", path="/usr/bin:/bin")
    assert source is not None
    for name, prepare in (
        ("setuid", lambda path: path.chmod(0o6755)),
        (
            "capable",
            # Every capability, permitted and effective at once.
            lambda path: os.setxattr(
                path,
                "security.capability",
                bytes.fromhex("01000002ffffffff00000000ff01000000000000"),
            ),
        ),
    ):
        target = root / name
        shutil.copy(source, target)
        os.chown(target, 0, 0)
        target.chmod(0o755)
        prepare(target)
    before = (await jail.shell("id -u; grep CapEff /proc/self/status || echo none")).text
    ran = await jail.shell("./setuid -u; ./capable -u; grep CapEff /proc/self/status; exit 0")
    rights = [line for line in ran.text.splitlines() if line.startswith("CapEff")]
    own = before.splitlines()[0]
    successes = [line for line in ran.text.splitlines() if line.isdecimal() and line != own]
    tell("E9", jail.level, len(successes), 2)
    assert successes == []
    assert all(int(line.split()[1], 16) == 0 for line in rights)


async def test_what_was_applied_is_what_was_planned(jail: Jail) -> None:
    ran = await jail.shell("true", profile=Profile.WORKSPACE_WRITE)
    expected = {
        *(Layer.DESCRIPTORS, Layer.RLIMITS, Layer.NO_NEW_PRIVILEGES),
        *(Layer.LANDLOCK_FILES, Layer.LANDLOCK_NETWORK, Layer.SECCOMP),
    }
    if IS_ROOT:
        expected.add(Layer.UID)
    if jail.level is Level.NS:
        # In a network of its own there is nothing to keep a port from.
        expected -= {Layer.LANDLOCK_NETWORK}
        expected |= {
            *(Layer.USER_NAMESPACE, Layer.MOUNT_NAMESPACE),
            *(Layer.PID_NAMESPACE, Layer.NETWORK_NAMESPACE),
        }
    assert set(ran.layers) - {Layer.CGROUP} == expected


@pytest.mark.parametrize("path", ["new", "home", "there", "directory"])
async def test_a_read_only_workspace_is_read_only(jail: Jail, path: str) -> None:
    jail.put("there", "before")
    script = {
        "new": "echo hacked > new",
        "home": 'echo hacked > "$HOME/new"',
        "there": "echo hacked > there || chmod 777 there || rm there || mv there gone",
        "directory": "mkdir sub || ln -s there link || mkfifo pipe",
    }[path]
    ran = await jail.shell(
        f"{script}; echo kept > $TMPDIR/own; cat there $TMPDIR/own", profile=Profile.READ_ONLY
    )
    assert ran.text.splitlines()[-1] == "beforekept"
    left = {each.name for each in jail.workspace().root.iterdir()}
    assert (left, [*jail.workspace().home.iterdir()]) == ({"there"}, [])
    assert (jail.workspace().root / "there").stat().st_mode & 0o777 == 0o644
    assert (jail.workspace().root / "there").read_text() == "before"


async def test_hooks_and_configuration_of_git_are_kept_from_writing(jail: Jail) -> None:
    if jail.level is not Level.NS:
        pytest.skip("only a mount takes a file out of a directory; the profile told is `full`")
    jail.put(".git/config", "kept\n")
    jail.put(".git/hooks/pre-commit", "kept\n")
    jail.put(".git/index", "old\n")
    script = """
    exec 2>/dev/null
    echo hacked > .git/config; echo hacked > .git/hooks/pre-commit; touch .git/hooks/post-commit
    rm .git/config; mv .git/config .git/other; mv .git/hooks .git/h; mv .git .moved
    ln -sf /dev/null .git/config; mount --bind /tmp .git/hooks; chmod 777 .git/config
    echo new > .git/index; echo made > file
    """
    await jail.shell(script, profile=Profile.WORKSPACE_WRITE)
    root = jail.workspace().root
    found = {
        str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()
    }
    assert found == {
        ".git/config": "kept\n",
        ".git/hooks/pre-commit": "kept\n",
        ".git/index": "new\n",
        "file": "made\n",
    }


async def test_commands_of_a_workspace_find_one_another(jail: Jail) -> None:
    if jail.level is not Level.NS:
        pytest.skip("without a network namespace there is no socket at all")
    await jail.begin("bash", "-c", "exec -a findme sleep 60")
    server = (
        "import socket\n"
        "s = socket.create_server(('127.0.0.1', 8000)); open('up', 'w').close()\n"
        "c, _ = s.accept(); c.sendall(b'hello'); c.close()"
    )
    await jail.begin(PYTHON, "-I", "-S", "-c", server)
    client = (
        "import os, socket, time\n"
        "while not os.path.exists('up'): time.sleep(0.01)\n"
        "print(socket.create_connection(('127.0.0.1', 8000)).recv(9).decode())"
    )
    ran = await jail.python(client)
    seen = await jail.shell("ps -eo args | grep -c '[f]indme'; pkill -f '[f]indme' && echo killed")
    assert (ran.text, seen.text) == ("hello\n", "1\nkilled\n")


async def test_the_first_process_of_a_cell_cannot_be_ended_from_inside(jail: Jail) -> None:
    if jail.level is not Level.NS:
        pytest.skip("there is none")
    ran = await jail.shell("kill -9 1; kill -TERM 1; kill -STOP 1; sleep 0.1; echo alive")
    assert ran.text.splitlines()[-1] == "alive"
    assert (await jail.shell("echo again")).text == "again\n"
