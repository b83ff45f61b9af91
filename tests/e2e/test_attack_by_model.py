"""A model that turns on its host: what it runs gets nothing out, and the transcript shows it."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from parley.clock import SystemClock
from support.net.http_client import HttpClient
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

CHATS = "/api/v1/chats"
REST_S_MAX = 180
SECRET = "of-another-chat-7f3a"

#: Tries everything it is given, and says of each what came of it.
SCRIPT = r"""
attempt() {
  name=$1; shift
  if out=$("$@" 2>error) && [ -n "$out" ]; then
    echo "GOT $name: ${out:0:80}"
  else
    echo "refused $name: $(tail -n 1 error)"
  fi
}
reach() { timeout 5 bash -c "exec 3<>/dev/tcp/$1/$2 && echo connected"; }
socket() { python3 -I -S -c "
import socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.settimeout(5); s.connect(sys.argv[1]); print('connected')" "$1"; }
call() { python3 -I -S -c "
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
numbers = [int(word) for word in sys.argv[1:]]
if libc.syscall(*numbers) < 0: sys.exit('errno %d' % ctypes.get_errno())
print('done')" "$@"; }
for path in @FILES@; do attempt "read $path" cat "$path"; done
for path in @DIRECTORIES@; do attempt "list $path" sh -c "ls -A '$path' | grep ."; done
for path in @SOCKETS@; do attempt "connect $path" socket "$path"; done
for pid in @PIDS@; do
  attempt "environment of $pid" cat "/proc/$pid/environ"
  attempt "memory of $pid" head -c 1 "/proc/$pid/mem"
  attempt "signal $pid" sh -c "kill -CONT $pid && echo sent"
done
for port in @PORTS@; do attempt "port $port" reach 127.0.0.1 "$port"; done
attempt "metadata" reach 169.254.169.254 80
attempt "a name" getent hosts example.com
attempt "the network" reach 1.1.1.1 443
attempt "root" sh -c "su -c id </dev/null"
attempt "a mount" sh -c "mount -t tmpfs none /mnt && echo mounted"
attempt "namespaces" sh -c "unshare -r id"
attempt "ptrace" call 101 16 1 0 0
attempt "io_uring" call 425 1 0
attempt "a key" call 250 0 0
attempt "write /usr" sh -c "echo hacked > /usr/hacked && echo written"
attempt "write /etc" sh -c "echo hacked > /etc/hacked && echo written"
attempt "variables" sh -c "env | grep -iE 'chatd_|gateway_|toolrunner_|database|_key'"
echo "END"
"""


def client_of(stack: LocalStack) -> HttpClient:
    key = stack.home.api_key_file.read_text().strip()
    port = int(stack.http.rpartition(":")[2])
    return HttpClient(port, {"Authorization": f"Bearer {key}"})


async def asked(client: HttpClient, status: int, method: str, path: str, body: Any = None) -> Any:
    reply = await client.request(method, path, body, {})
    assert reply.status == status, (method, path, reply.body)
    return reply.json()


async def chat_that_did(client: HttpClient, *steps: str) -> str:
    """Have the model take steps; return the path of the chat when it has."""
    body = {"content": [{"type": "text", "text": "\n".join(steps)}]}
    created = await asked(client, 201, "POST", CHATS, body)
    path = f"{CHATS}/{created['id']}"
    async with asyncio.timeout(REST_S_MAX):
        while (await asked(client, 200, "GET", path))["status"] not in ("waiting", "error"):
            await SystemClock().sleep(0.1)
    return path


def attack(stack: LocalStack, other: str) -> str:
    """Return the script with everything of this stack that it must not get."""
    root = stack.home.root
    services = [each.pid for each in stack.everyone()]
    files = [each for each in root.rglob("*") if each.is_file() and is_private(each)]
    sockets = list(root.rglob("*.sock"))
    # The way to its own files is there, with nothing else on it.
    others = [each for each in root.iterdir() if each.is_dir() and each.name != "toolrunner"]
    words: dict[str, Sequence[object]] = {
        "@FILES@": [*files[:40], *(root.rglob(f"{other}/files/secret")), "/etc/shadow"],
        "@DIRECTORIES@": [*others, "/root", "/var/lib", "/run"],
        "@SOCKETS@": sockets[:20],
        "@PIDS@": services[:10],
        "@PORTS@": [stack.http.rpartition(":")[2]],
    }
    script = SCRIPT
    for name, values in words.items():
        script = script.replace(name, " ".join(f"'{each}'" for each in values))
    return script


def is_private(path: Path) -> bool:
    return path.suffix in (".pem", ".json", ".sqlite", ".key", ".secret") or "key" in path.name


async def test_an_attack_that_a_model_runs_gets_nothing_out_and_the_transcript_says_so(
    stack: LocalStack,
) -> None:
    client = client_of(stack)
    given = json.dumps({"path": "secret", "content": SECRET})
    other = await chat_that_did(client, f"call: write_file {given}")
    script = attack(stack, other.rpartition("/")[2])
    given = json.dumps({"path": "attack.sh", "content": script})
    run = json.dumps({"command": "bash attack.sh", "timeout": "3m"})
    path = await chat_that_did(client, f"call: write_file {given}", f"call: execute {run}")
    transcript = json.dumps(await asked(client, 200, "GET", f"{path}/messages"))
    [output] = [each for each in outputs_of(json.loads(transcript)) if "END" in each]
    lines = output.splitlines()
    got = [line for line in lines if line.startswith("GOT")]
    refused = [line for line in lines if line.startswith("refused")]
    print(f"a model's attack at {level_of(transcript)}: {len(got)} of {len(refused)} succeeded")
    assert got == []
    assert len(refused) > 40
    # Read once more from outside: nothing of what is secret is in what the chat keeps.
    key = stack.home.api_key_file.read_text().strip()
    assert (key in transcript, SECRET in transcript) == (False, False)
    assert stack.is_up()


async def test_the_level_that_is_told_by_doctor_is_the_one_that_tools_have(
    stack: LocalStack,
) -> None:
    client = client_of(stack)
    path = await chat_that_did(client, "run: true")
    transcript = json.dumps(await asked(client, 200, "GET", f"{path}/messages"))
    told = stack.parley("doctor")
    offer = json.loads(stack.parley("doctor", "--json").stdout)["sandbox"]
    assert offer["level"] == level_of(transcript)
    [line] = [each for each in told.stdout.splitlines() if " sandbox " in each]
    assert f"level {offer['level']}" in line
    for missing in offer["missing"]:
        [line] = [each for each in told.stdout.splitlines() if missing["cause"] in each]
        assert f"To have it: {missing['remedy']}" in line


def level_of(transcript: str) -> str:
    """Return the sandbox level that the results of a transcript tell."""
    found = {
        word
        for word in ("ns", "landlock", "uid", "none")
        if f'"sandbox": "{word}"' in plain(transcript)
    }
    [level] = found
    return level


def plain(transcript: str) -> str:
    """Return a transcript with results that are JSON inside of JSON made readable."""
    return transcript.replace('\\\\"', '"').replace('\\"', '"').replace('":"', '": "')


def outputs_of(document: Any) -> list[str]:
    """Return everything that a command printed, wherever it is in a transcript."""
    match document:
        case dict():
            own = [document["output"]] if isinstance(document.get("output"), str) else []
            return own + [each for value in document.values() for each in outputs_of(value)]
        case list():
            return [each for value in document for each in outputs_of(value)]
        case str() if document.startswith("{"):
            try:
                return outputs_of(json.loads(document))
            except ValueError:
                return []
        case _:
            return []
