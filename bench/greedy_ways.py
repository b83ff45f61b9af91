"""The ways in which a member takes what it can from others, for `bench/fairness.py`.

    deletes        creates chats and deletes them while they are answered
    workspaces     interrupts or deletes chats while they create workspaces
    restarts       stops and starts workspaces
    scratches      creates chats, runs a command in each, and deletes them
    waits          waits for the output of a process and follows repositories, 390 times at once
    streams        opens 5,000 streams of a chat, and more whenever one is refused
    abandoned      330 messages a second, each with a connection that is closed at once
    connections    opens 5,000 connections and sends half a request on each, again and again
    stops          stops all processes that it may signal, again and again, and starts commands
    deleted-files  fills the disk with files that are deleted and still open
    inotify        takes all inotify instances, queued signals and terminals that it gets
    forks          starts processes that start processes
    spin           keeps all processors busy

`python bench/greedy_ways.py WAY URL`, with the API key of the member in BENCH_API_KEY, is greedy in
one way until it is killed.
"""

import asyncio
import itertools
import json
import os
import resource
import shlex
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.append(str(Path(__file__).resolve().parent.parent))

from parley.testing.scaletest import Dialer, EventReader, Requests, Target
from support.toolrunner.attacks import EXHAUSTING
from support.toolrunner.misbehaving import BOMBS

DELETERS = 8
CREATORS = 8
RESTARTED = 8
WAITS = 390
STREAMS = 5000
ABANDONED_PER_S = 330
CONNECTIONS = 5000
AGAIN_S = 0.5
#: How long after its start a chat that creates a workspace is interrupted or deleted.
DISTURBED_AFTER_S = (0.0, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32)
#: More than the 128 instances that a user has by default.
TAKEN_MAX = 4096

HELLO = {"content": [{"type": "text", "text": "hello"}]}
#: The model that runs the lines of a message as a script.
SCRIPTED = "scripted"
STOP_ALL = "while :; do kill -STOP -1; sleep 0.01; done"
FILL_WITH_DELETED = """
import os, time
kept = []
while True:
    try:
        file = open("big", "wb")
        os.unlink("big")
        kept.append(file)
        for _ in range(64):
            file.write(bytes(1 << 20))
            file.flush()
    except OSError:
        time.sleep(0.1)
"""


class Api:
    """Requests of one user; connections are kept."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._requests = Requests(Dialer(target))

    async def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Return the status and the document of an answer."""
        encoded = b"" if body is None else json.dumps(body).encode()
        head, answer = await self._requests.ask(self.target.request(method, path, encoded))
        return head.status, json.loads(answer) if answer else None

    async def insist(self, method: str, path: str, body: object = None) -> Any:
        """Repeat a request until it is accepted, and return its document."""
        while True:
            status, document = await self.ask(method, path, body)
            if 200 <= status < 300:
                return document
            await asyncio.sleep(AGAIN_S)

    def close(self) -> None:
        """Close the connections."""
        self._requests.close()


async def deletes(target: Target) -> None:
    """Create chats and delete them while they are answered."""

    async def delete() -> None:
        api = Api(target)
        while True:
            chat = await api.insist("POST", "/chats", HELLO)
            await api.ask("DELETE", f"/chats/{chat['id']}")

    await together(delete() for _ in range(DELETERS))


async def workspaces(target: Target) -> None:
    """Interrupt or delete chats while they create workspaces."""
    arguments = json.dumps({"template_id": await scratch_template(Api(target))})
    text = f"call: create_workspace {arguments}"
    body = {"content": [{"type": "text", "text": text}], "model_id": SCRIPTED}

    async def create(number: int) -> None:
        api, delays = Api(target), itertools.cycle(DISTURBED_AFTER_S)
        for attempt in itertools.count(number):
            chat = await api.insist("POST", "/chats", body)
            await asyncio.sleep(next(delays))
            if attempt % 2:
                await api.ask("POST", f"/chats/{chat['id']}/interrupt", {})
            await api.ask("DELETE", f"/chats/{chat['id']}")
            if attempt % 10 == 0:
                await delete_workspaces(api)

    await together(create(number) for number in range(CREATORS))


async def restarts(target: Target) -> None:
    """Stop and start workspaces."""
    template_id = await scratch_template(Api(target))

    async def restart() -> None:
        api = Api(target)
        made = await api.insist("POST", "/workspaces", {"template_id": template_id})
        while True:
            for change in ("stop", "start"):
                await api.ask("POST", f"/workspaces/{made['id']}/{change}", {})

    await together(restart() for _ in range(RESTARTED))


async def scratches(target: Target) -> None:
    """Create chats, run a command in each, and delete them."""

    async def run() -> None:
        api = Api(target)
        while True:
            chat = await api.insist("POST", "/chats", HELLO)
            await api.ask("POST", f"/chats/{chat['id']}/processes", {"command": "true"})
            await api.ask("DELETE", f"/chats/{chat['id']}")

    await together(run() for _ in range(CREATORS))


async def waits(target: Target) -> None:
    """Wait for the output of a process, and follow repositories."""
    api = Api(target)
    path = f"/chats/{(await api.insist('POST', '/chats', HELLO))['id']}"
    sleeping = {"command": "sleep 600", "background": True}
    process = await api.insist("POST", f"{path}/processes", sleeping)
    places = (f"{path}/processes/{process['id']}/output?wait=300", f"{path}/git/events")
    await together(hold(target, places[number % 2]) for number in range(WAITS))


async def streams(target: Target) -> None:
    """Open as many streams of a chat as are given."""
    chat = await Api(target).insist("POST", "/chats", HELLO)
    await together(hold(target, f"/chats/{chat['id']}/events") for _ in range(STREAMS))


async def abandoned(target: Target) -> None:
    """Send messages and hang up at once."""
    chat = await Api(target).insist("POST", "/chats", HELLO)
    body = json.dumps(HELLO).encode()
    request = target.request("POST", f"/chats/{chat['id']}/messages", body)
    due_s = time.monotonic()
    while True:
        with suppress(OSError):
            _, writer = await asyncio.open_connection(target.host, target.port)
            writer.write(request)
            await writer.drain()
            writer.close()
        due_s = max(due_s + 1 / ABANDONED_PER_S, time.monotonic() - 1)
        await asyncio.sleep(max(0.0, due_s - time.monotonic()))


async def connections(target: Target) -> None:
    """Open connections and send half a request on each."""

    async def half() -> None:
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(target.host, target.port)
                writer.write(b"GET / HTTP/1.1\r\nHost: ")
                await reader.read()
                writer.close()
            await asyncio.sleep(AGAIN_S)

    await together(half() for _ in range(CONNECTIONS))


async def stops(target: Target) -> None:
    """Stop everything that may be signalled, and start commands where that goes on."""
    api = Api(target)
    path = f"/chats/{(await api.insist('POST', '/chats', HELLO))['id']}/processes"
    await api.insist("POST", path, {"command": STOP_ALL, "background": True})
    while True:
        await api.ask("POST", path, {"command": "true"})
        await asyncio.sleep(AGAIN_S)


def running(command: str) -> "Way":
    """Return the way of one command, which is started again whenever it ended."""

    async def run(target: Target) -> None:
        api = Api(target)
        path = f"/chats/{(await api.insist('POST', '/chats', HELLO))['id']}/processes"
        while True:
            process = await api.insist("POST", path, {"command": command, "background": True})
            while process is not None and process["state"] in ("starting", "running"):
                await asyncio.sleep(AGAIN_S)
                _, process = await api.ask("GET", f"{path}/{process['id']}")

    return run


def python(program: str, *arguments: str) -> str:
    """Return a shell command that runs a program."""
    return shlex.join(("python3", "-I", "-S", "-c", program, *arguments))


async def hold(target: Target, path: str) -> None:
    """Have a request open all the time; one that is refused is made again."""
    request = target.request("GET", path)
    while True:
        with suppress(OSError):
            stream = await Dialer(target).connect(lambda: EventReader(request, lambda _: None))
            await stream.closed
        await asyncio.sleep(AGAIN_S)


async def scratch_template(api: Api) -> str:
    """Return the id of the template of empty workspaces."""
    templates = (await api.insist("GET", "/templates"))["items"]
    (found,) = [each["id"] for each in templates if each["name"] == "scratch"]
    return str(found)


async def delete_workspaces(api: Api) -> bool:
    """Delete the workspaces of a user, and return whether there were any."""
    _, listed = await api.ask("GET", "/workspaces?limit=100")
    items = (listed or {}).get("items", ())
    left = [each["id"] for each in items if each["state"] != "deleted"]
    for workspace_id in left:
        await api.ask("DELETE", f"/workspaces/{workspace_id}?force=true")
    return bool(left)


async def delete_chats(api: Api) -> bool:
    """Delete chats of a user, which ends their processes, and return whether there were any."""
    _, listed = await api.ask("GET", "/chats?limit=100")
    ids = [each["id"] for each in (listed or {}).get("items", ())]
    for chat_id in ids:
        await api.ask("DELETE", f"/chats/{chat_id}")
    return bool(ids)


async def together(works: Iterable[Awaitable[None]]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for number, work in enumerate(works):
            tasks.create_task(_run(work))
            if number % 50 == 49:
                await asyncio.sleep(0.02)


async def _run(work: Awaitable[None]) -> None:
    await work


Way = Callable[[Target], Awaitable[None]]

WAYS: Mapping[str, Way] = {
    "deletes": deletes,
    "workspaces": workspaces,
    "restarts": restarts,
    "scratches": scratches,
    "waits": waits,
    "streams": streams,
    "abandoned": abandoned,
    "connections": connections,
    "stops": stops,
    "deleted-files": running(python(FILL_WITH_DELETED)),
    "inotify": running(python(EXHAUSTING, str(TAKEN_MAX), "hold")),
    "forks": running(BOMBS["fork bomb"]),
    "spin": running(BOMBS["cpu spin"]),
}


def main() -> None:
    way, url = sys.argv[1:]
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    # A client on another machine would not take processor time from the stack.
    psutil.Process().nice(10)
    asyncio.run(_run(WAYS[way](Target(url, os.environ["BENCH_API_KEY"]))))


if __name__ == "__main__":
    main()
