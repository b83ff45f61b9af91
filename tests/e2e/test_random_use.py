"""Two users use everything at random and at once: no process dies, no request fails, all is sound.

Each has chats and workspaces, one chat is shared, and now and then one tries to change what belongs
to the other, which must be refused.

`--full-size` does many times as much, for minutes, and `--seed N` something else. What the actors
do is decided by the seed; who is first where they meet is not.
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
from support.stack.page_session import call, new_user
from support.stack.random_actions import ASKING_RULE, WEIGHTS, content
from support.stack.random_use import CHATS, RandomUser, Results, share_a_chat, use_at_random

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
        CHATD_NEW_WORKSPACES_PER_USER_MAX="0",
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


def two_members(stack: LocalStack, rng: random.Random) -> tuple[RandomUser, RandomUser]:
    """Return two users who know each other; administrators may stop workspaces of others."""
    results = Results()
    first, second = (new_member(stack, login, rng, results) for login in ("rose", "otto"))
    first.others.append(second)
    second.others.append(first)
    return first, second


def new_member(stack: LocalStack, login: str, rng: random.Random, results: Results) -> RandomUser:
    """Return a user who knows of nothing yet."""
    user_id = new_user(stack, login)
    key = call(stack, "POST", "/api/v1/me/api-keys", {"name": "all"}, login=login)["key"]
    templates = call(stack, "GET", "/api/v1/templates", key=key)["items"]
    (scratch,) = [each["id"] for each in templates if each["name"] == "scratch"]
    call(stack, "POST", "/api/v1/me/approval-rules", ASKING_RULE, key=key)
    port = int(stack.http.rpartition(":")[2])
    client = HttpClient(port, {"Authorization": f"Bearer {key}"})
    return RandomUser(user_id, client, rng, scratch, results)


async def test_random_use_ends_no_process_and_breaks_nothing(
    two_chatd: LocalStack, pytestconfig: pytest.Config
) -> None:
    seed = pytestconfig.getoption("--seed")
    actions = ACTIONS_FULL if pytestconfig.getoption("--full-size") else ACTIONS
    rng = random.Random(SEED if seed is None else seed)
    owner, reader = await asyncio.to_thread(two_members, two_chatd, rng)
    results = owner.results
    before = {each["pid"]: each["service"] for each in two_chatd.status()["processes"]}
    await share_a_chat(owner)
    await use_at_random((owner, reader), WEIGHTS, actions, ACTORS)
    for user in (owner, reader):
        await come_to_rest(user.client)
    shared = f"{CHATS}/{results.shared_chat_id}"
    read = await reader.client.request("GET", shared)
    written = await reader.client.request("POST", f"{shared}/messages", content(reader))
    after = two_chatd.status()["processes"]
    connection = await asyncpg.connect(two_chatd.endpoints()["database"])
    taken_over = await connection.fetch("SELECT chat_id FROM chat.chat_exec WHERE takeovers > 0")
    await connection.close()
    audit = two_chatd.parley("audit")
    print(dict(sorted(results.answers.items())))
    assert results.failures == []
    assert (read.status, written.status) == (200, 403)
    assert {each["pid"]: each["service"] for each in after} == before
    assert [each["service"] for each in after if each["restarts"]] == []
    assert taken_over == []
    assert complaints(two_chatd) == [], "\n\n".join(complaints(two_chatd))
    assert audit.returncode == 0, audit.stdout + audit.stderr
