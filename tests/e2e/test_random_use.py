"""Random use of everything at once: no process dies, nobody is told of a failure, all is sound.

`--full-size` does ten times as much, for minutes, and `--seed N` something else. What the actors do
is decided by the seed; who is first where they meet is not.
"""

import asyncio
import random  # noqa: TID251 (seeded, and passed on)
from collections.abc import Iterator
from contextlib import suppress

import asyncpg
import pytest

from parley.clock import SystemClock
from support.net.http_client import HttpClient
from support.stack.local_stack import LocalStack
from support.stack.random_use import CHATS, RandomUse

pytestmark = pytest.mark.slow

SEED = 16
ACTIONS, ACTIONS_FULL = 700, 12_000
ACTORS = 12
AT_REST = ("waiting", "error", "requires_action")
REST_S_MAX = 120.0
CONTEXT_LINES = 40
COMPLAINTS = ("the background task", "a runner crashed", "Traceback", "a chat was parked")


@pytest.fixture
def two_chatd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    stack = LocalStack.at(
        tmp_path_factory.mktemp("home"),
        CHATD_LIVE_WORKSPACES_PER_USER_MAX="1000",
        CHATD_WORKSPACES_PER_USER_MAX="10000",
        TOOLRUNNER_WORKSPACES_MAX="1000",
    )
    started = stack.up("--chatd", "2")
    assert started.returncode == 0, started.stdout + started.stderr
    yield stack
    assert stack.parley("down").returncode == 0


async def come_to_rest(client: HttpClient) -> None:
    """Interrupt what runs until nothing does."""
    async with asyncio.timeout(REST_S_MAX):
        while True:
            listed = (await client.request("GET", f"{CHATS}?limit=200")).json()["items"]
            working = [chat["id"] for chat in listed if chat["status"] not in AT_REST]
            if not working:
                return
            for chat_id in working:
                await client.request("POST", f"{CHATS}/{chat_id}/interrupt", {})
            await SystemClock().sleep(0.2)


def complaints(stack: LocalStack) -> list[str]:
    """Return the lines of the services' logs that tell of something unexpected."""
    found = []
    for path in sorted(stack.home.logs.iterdir()):
        with suppress(OSError):
            lines = path.read_text(errors="replace").splitlines()
            for place, line in enumerate(lines):
                if any(word in line for word in COMPLAINTS):
                    around = "\n".join(lines[max(0, place - 1) : place + CONTEXT_LINES])
                    found.append(f"{path.name}: {around}")
    return found


async def test_random_use_ends_no_process_and_breaks_nothing(
    two_chatd: LocalStack, pytestconfig: pytest.Config
) -> None:
    seed = pytestconfig.getoption("--seed")
    actions = ACTIONS_FULL if pytestconfig.getoption("--full-size") else ACTIONS
    key = two_chatd.home.api_key_file.read_text().strip()
    client = HttpClient(int(two_chatd.http.rpartition(":")[2]), {"Authorization": f"Bearer {key}"})
    templates = (await client.request("GET", "/api/v1/templates")).json()["items"]
    (scratch,) = [each["id"] for each in templates if each["name"] == "scratch"]
    before = {each["service"]: each["pid"] for each in two_chatd.status()["processes"]}
    use = RandomUse(client, random.Random(SEED if seed is None else seed), scratch)
    await use.run(actions, ACTORS)
    await come_to_rest(client)
    after = two_chatd.status()["processes"]
    connection = await asyncpg.connect(two_chatd.endpoints()["database"])
    taken_over = await connection.fetch("SELECT chat_id FROM chat.chat_exec WHERE takeovers > 0")
    await connection.close()
    audit = two_chatd.parley("audit")
    print(dict(sorted(use.answers.items())))
    assert use.failures == []
    assert {each["service"]: each["restarts"] for each in after} == dict.fromkeys(before, 0)
    assert {each["service"]: each["pid"] for each in after} == before
    assert taken_over == []
    assert complaints(two_chatd) == [], "\n\n".join(complaints(two_chatd))
    assert audit.returncode == 0, audit.stdout + audit.stderr
