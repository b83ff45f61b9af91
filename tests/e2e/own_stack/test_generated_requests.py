"""Requests generated from the OpenAPI document: by members, an administrator, and by none.

No answer is a server error, each has a documented status and shape, and none has data of others.
Streams do not end, so they are read for a moment each.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random  # noqa: TID251 (seeded)
from urllib.parse import quote

import pytest

from support.host.conditions import until
from support.stack.local_stack import LocalStack
from support.stack.page_session import call

pytestmark = pytest.mark.slow

CANARY = "canary-5f3a1c"
SEED = 20
#: Examples of each operation.
EXAMPLES, EXAMPLES_FULL_SIZE = 1, 4
RUN_S_MAX = 600
DOCUMENTED = "status_code_conformance,content_type_conformance,response_schema_conformance"
CHECKS = f"not_a_server_error,{DOCUMENTED}"
#: These have a test of their own.
STREAMING = r"(events|stream|/terminal|/ws)"
#: Titles need a model, prompts a server: these fail with a 503, which is documented.
ASKING = r"(/title/|/prompts/get)"
LEFT_OUT = f"({STREAMING}|{ASKING})"
#: Operations on objects of which the test knows ids.
WITH_IDS = r"\{(chat_id|workspace_id|message_id|schedule_id|secret_id|rule_id|api_key_id)\}"
#: What administrators alone may use; what members may use, they were sent before.
ADMINISTRATION = (
    r"^/api/v1/(users|groups|providers|provider-keys|models|model-overrides|settings|spend-limits"
    r"|templates|hooks|oidc-issuers|service-tokens|audit-log|retention|nodes|usage|break-glass"
    r"|approval-rules|mcp/servers)"
)
#: These ask other servers, and what those fail with is a 502 or a 503.
ASKING_OTHERS = r"(/check|/probe|/hooks/[^/]+/test|/tools|/resources|/login)"
STREAMS = (
    "/api/v1/chats/{id}/events",
    "/api/v1/events",
    "/api/v1/workspaces/{id}/events",
    "/api/v1/chats/{id}/git/events",
)
STREAM_PARAMETERS = ("cursor", "after_id", "after", "types", "other")
STREAM_REQUESTS = 80
STREAM_S = 0.3


@pytest.fixture
def examples(pytestconfig: pytest.Config) -> int:
    return EXAMPLES_FULL_SIZE if pytestconfig.getoption("--full-size") else EXAMPLES


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    stack = LocalStack.at(tmp_path_factory.mktemp("generated") / "home")
    started = stack.up()
    assert started.returncode == 0, started.stderr
    yield stack
    assert stack.parley("down").returncode == 0


def account(stack: LocalStack, login: str, role: str = "member") -> str:
    """Make a user, and return a key of theirs."""
    body = {"kind": "service", "login": login, "role": role}
    user_id = call(stack, "POST", "/api/v1/users", body)["id"]
    made = call(stack, "POST", f"/api/v1/users/{user_id}/api-keys", {"name": "generated"})
    return str(made["key"])


def chat_with_canary(stack: LocalStack, key: str) -> str:
    """Write the canary to a chat and its workspace of a member; return the chat's id."""
    content = [{"type": "text", "text": f"run: echo {CANARY} > {CANARY}.txt"}]
    chat_id = call(stack, "POST", "/api/v1/chats", {"content": content}, key=key)["id"]
    path = f"/api/v1/chats/{chat_id}"
    call(stack, "PATCH", path, {"title": CANARY, "labels": {"kind": CANARY}}, key=key)
    until(
        lambda: call(stack, "GET", path, key=key)["status"] == "waiting", "an answer", within_s=60
    )
    return str(chat_id)


def generated(
    stack: LocalStack,
    directory: Path,
    key: str = "",
    config: str = "",
    *,
    examples: int,
    only: str = "",
    left_out: str = LEFT_OUT,
    checks: str = CHECKS,
) -> str:
    """Send generated requests, and return all requests and answers."""
    (directory / "schemathesis.toml").write_text(config)
    program = [
        sys.executable,
        "-m",
        "schemathesis.cli",
        "--config-file",
        "schemathesis.toml",
        "run",
    ]
    options = {
        "--checks": checks,
        "--phases": "examples,fuzzing",
        "--max-examples": examples,
        "--seed": SEED,
        "--exclude-path-regex": left_out,
        "--suppress-health-check": "all",
        "--request-timeout": 30,
        "--report-vcr-path": "sent.yaml",
    }
    if only:
        options["--include-path-regex"] = only
    words = [str(word) for option in options.items() for word in option]
    headers = ["--header", f"Authorization: Bearer {key}"] if key else []
    ran = subprocess.run(
        [*program, f"http://{stack.http}/openapi.json", *words, *headers],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-2000:]
    return (directory / "sent.yaml").read_text()


def showing_canary(sent: str) -> list[str]:
    """Return the requests that have the canary, or whose answers have it."""
    exchanges = sent.split("\n- id: ")
    return [
        next((line.strip() for line in each.splitlines() if "uri:" in line), each[:200])
        for each in exchanges
        if CANARY in each
    ]


def test_generated_requests_of_a_member_get_documented_answers(
    stack: LocalStack, tmp_path: Path, examples: int
) -> None:
    chat_with_canary(stack, account(stack, "left"))
    sent = generated(stack, tmp_path, account(stack, "right"), examples=examples)
    assert showing_canary(sent) == []


#: Parameter of a path -> where a member makes such an object, of what, and where it is listed.
OWN_OBJECTS = {
    "schedule_id": ("/api/v1/schedules", {"text": CANARY, "cron": "30 9 * * mon"}),
    "secret_id": (
        "/api/v1/secrets",
        {"name": "CANARY", "delivery": "environment", "value": CANARY},
    ),
    "rule_id": ("/api/v1/me/approval-rules", {"effect": "ask", "tool": "execute"}),
    "api_key_id": ("/api/v1/me/api-keys", {"name": CANARY}),
}


def test_generated_requests_with_ids_of_others_get_nothing_of_theirs(
    stack: LocalStack, tmp_path: Path, examples: int
) -> None:
    their_key = account(stack, "theirs")
    chat_id = chat_with_canary(stack, their_key)
    messages = call(stack, "GET", f"/api/v1/chats/{chat_id}/messages", key=their_key)["messages"]
    made = {
        name: call(stack, "POST", path, body, key=their_key)["id"]
        for name, (path, body) in OWN_OBJECTS.items()
    }
    # A chat names its workspace too.
    ids = {"chat_id": chat_id, "workspace_id": chat_id, "message_id": messages[0]["id"], **made}
    config = "[parameters]\n" + "".join(
        f'"path.{name}" = {json.dumps(each)}\n' for name, each in ids.items()
    )
    # Operations without these ids were sent the same in the test above.
    key = account(stack, "asking")
    sent = generated(stack, tmp_path, key, config, only=WITH_IDS, examples=examples)
    shown = call(stack, "GET", f"/api/v1/chats/{chat_id}", key=their_key)
    left = {
        name: [each["id"] for each in call(stack, "GET", path, key=their_key)["items"]]
        for name, (path, _) in OWN_OBJECTS.items()
    }

    assert [name for name, each in ids.items() if str(each) not in sent] == []
    assert showing_canary(sent) == []
    assert (shown["title"], shown["labels"]) == (CANARY, {"kind": CANARY})
    assert [name for name, each in made.items() if each not in left[name]] == []


def test_generated_requests_without_a_key_get_documented_answers(
    stack: LocalStack, tmp_path: Path, examples: int
) -> None:
    chat_id = chat_with_canary(stack, account(stack, "known"))
    config = f'[parameters]\n"path.chat_id" = "{chat_id}"\n'
    assert showing_canary(generated(stack, tmp_path, config=config, examples=examples)) == []


def test_generated_requests_for_streams_get_nothing_of_others(stack: LocalStack) -> None:
    their_key = account(stack, "streaming")
    chat_id = chat_with_canary(stack, their_key)
    own_key = account(stack, "listening")
    begun = {"content": [{"type": "text", "text": "repeat after me: mine"}]}
    own_id = call(stack, "POST", "/api/v1/chats", begun, key=own_key)["id"]
    cursors = asyncio.run(read(stack, f"/api/v1/chats/{chat_id}/events", their_key))
    known = [line.removeprefix("id: ") for line in cursors.splitlines() if line.startswith("id: ")]
    assert CANARY in cursors
    assert known
    random, ids = Random(SEED), (chat_id, own_id, "00000000-0000-4000-8000-00000000dead", "none")
    answers = asyncio.run(sent_streams(stack, random, ids, known, (own_key, "")))
    wrong = [(request, answer[:200]) for request, answer in answers if is_wrong(answer)]

    assert len(answers) == STREAM_REQUESTS
    assert any(answer.startswith("HTTP/1.1 200") for _, answer in answers)
    assert wrong == []


def is_wrong(answer: str) -> bool:
    """Tell whether an answer is a server error, no answer, or has something of another user."""
    status = answer.partition(" ")[2][:3]
    is_answered = status.isdigit() and (int(status) < 500 or status == "503")
    return not is_answered or CANARY in answer


async def sent_streams(
    stack: LocalStack,
    random: Random,
    ids: tuple[str, ...],
    cursors: list[str],
    keys: tuple[str, ...],
) -> list[tuple[str, str]]:
    """Open streams with generated parameters, some at a time; return requests and answers."""
    odd = ["", "0", "-1", "9" * 40, "null", "\0", "é", "a" * 5000, "message,error", "message", "*"]
    values = [*cursors, *odd, json.dumps({"a": cursors[:1]})]

    def parameter(name: str) -> str:
        return f"{name}={quote(random.choice(values), safe='')}"

    requests = []
    for number in range(STREAM_REQUESTS):
        path = STREAMS[number % len(STREAMS)].format(id=random.choice(ids))
        names = random.sample(
            ("cursor", "after_id", "after", "types", "other"), random.randrange(3)
        )
        query = "&".join(map(parameter, names))
        last = random.choice(values) if random.random() < 0.3 else ""
        last = "".join(each for each in last if each.isprintable() and each.isascii())[:2000]
        requests.append((f"{path}?{query}", random.choice(keys), last))
    answers = []
    for start in range(0, len(requests), 8):
        async with asyncio.TaskGroup() as tasks:
            opened = [
                (request, tasks.create_task(read(stack, request[0], request[1], request[2])))
                for request in requests[start : start + 8]
            ]
        answers += [(" ".join(map(repr, request)), task.result()) for request, task in opened]
    return answers


async def read(stack: LocalStack, path: str, key: str, last_event_id: str = "") -> str:
    """Return what a stream sends in a moment, from its status line on."""
    host, _, port = stack.http.partition(":")
    lines = [f"GET {path} HTTP/1.1", f"Host: {stack.http}", "Connection: close"]
    if key:
        lines.append(f"Authorization: Bearer {key}")
    if last_event_id:
        lines.append(f"Last-Event-ID: {last_event_id}")
    reader, writer = await asyncio.open_connection(host, int(port))
    content = b""
    try:
        writer.write("\r\n".join((*lines, "", "")).encode())
        async with asyncio.timeout(30):
            content = await reader.read(65536)
        async with asyncio.timeout(STREAM_S):
            while piece := await reader.read(65536):
                content += piece
    except TimeoutError:
        pass
    finally:
        writer.close()
    return content.decode(errors="replace")


def test_generated_requests_of_an_administrator_get_documented_answers_and_no_chats(
    stack: LocalStack, tmp_path: Path, examples: int
) -> None:
    chat_id = chat_with_canary(stack, account(stack, "administered"))
    config = f'[parameters]\n"path.chat_id" = "{chat_id}"\n"path.workspace_id" = "{chat_id}"\n'
    key = account(stack, "administering", "admin")
    left_out = f"{LEFT_OUT}|{ASKING_OTHERS}"
    sent = generated(
        stack, tmp_path, key, only=ADMINISTRATION, left_out=left_out, examples=examples
    )
    of_chats = r"^/api/v1/chats/\{"
    chats = generated(stack, tmp_path, key, config, only=of_chats, examples=examples)
    assert showing_canary(sent) == []
    assert chat_id in chats
    assert showing_canary(chats) == []


def test_generated_requests_that_ask_other_servers_get_documented_answers(
    stack: LocalStack, tmp_path: Path, examples: int
) -> None:
    chat_id = chat_with_canary(stack, account(stack, "asked-about"))
    config = f'[parameters]\n"path.chat_id" = "{chat_id}"\n'
    sent = generated(
        stack,
        tmp_path,
        account(stack, "asking-others", "admin"),
        config,
        only=f"({ASKING}|{ASKING_OTHERS})",
        left_out=STREAMING,
        checks=DOCUMENTED,
        examples=examples,
    )
    assert "/prompts/get" in sent
    assert showing_canary(sent) == []
