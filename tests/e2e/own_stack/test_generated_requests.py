"""Requests generated from the OpenAPI document: by two members, by one on another's chats, by none.

No answer is a server error, each has a documented status and shape, and none has data of others.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.host.conditions import until
from support.stack.local_stack import LocalStack
from support.stack.page_session import call

pytestmark = pytest.mark.slow

CANARY = "canary-5f3a1c"
SEED = 20
EXAMPLES_MAX = 2
RUN_S_MAX = 400
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance"
)
#: Streams do not end. Titles need a model, prompts a server: what these fail with is a 503.
LEFT_OUT = r"(events|stream|/terminal|/ws|/title/|/prompts/get)"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    stack = LocalStack.at(tmp_path_factory.mktemp("generated") / "home")
    started = stack.up()
    assert started.returncode == 0, started.stderr
    yield stack
    assert stack.parley("down").returncode == 0


def account(stack: LocalStack, login: str) -> str:
    """Make a member, and return a key of theirs."""
    body = {"kind": "service", "login": login, "role": "member"}
    user_id = call(stack, "POST", "/api/v1/users", body)["id"]
    made = call(stack, "POST", f"/api/v1/users/{user_id}/api-keys", {"name": "generated"})
    return str(made["key"])


def chat_with_canary(stack: LocalStack, key: str) -> str:
    """Write the canary to a chat, its workspace and a skill of a member; return the chat's id."""
    content = [{"type": "text", "text": f"run: echo {CANARY} > {CANARY}.txt"}]
    chat_id = call(stack, "POST", "/api/v1/chats", {"content": content}, key=key)["id"]
    path = f"/api/v1/chats/{chat_id}"
    call(stack, "PATCH", path, {"title": CANARY, "labels": {"kind": CANARY}}, key=key)
    until(
        lambda: call(stack, "GET", path, key=key)["status"] == "waiting", "an answer", within_s=60
    )
    return str(chat_id)


def generated(stack: LocalStack, directory: Path, key: str = "", config: str = "") -> str:
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
        "--checks": CHECKS,
        "--phases": "examples,fuzzing",
        "--max-examples": EXAMPLES_MAX,
        "--seed": SEED,
        "--exclude-path-regex": LEFT_OUT,
        "--suppress-health-check": "all",
        "--request-timeout": 30,
        "--report-vcr-path": "sent.yaml",
    }
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


def test_generated_requests_of_a_member_get_documented_answers(
    stack: LocalStack, tmp_path: Path
) -> None:
    chat_with_canary(stack, account(stack, "left"))
    assert CANARY not in generated(stack, tmp_path, account(stack, "right"))


def test_generated_requests_with_ids_of_others_get_nothing_of_theirs(
    stack: LocalStack, tmp_path: Path
) -> None:
    their_key = account(stack, "theirs")
    chat_id = chat_with_canary(stack, their_key)
    # A chat names its workspace too.
    config = f'[parameters]\n"path.chat_id" = "{chat_id}"\n"path.workspace_id" = "{chat_id}"\n'
    sent = generated(stack, tmp_path, account(stack, "asking"), config)
    assert chat_id in sent
    assert CANARY not in sent
    shown = call(stack, "GET", f"/api/v1/chats/{chat_id}", key=their_key)
    assert (shown["title"], shown["labels"]) == (CANARY, {"kind": CANARY})


def test_generated_requests_without_a_key_get_documented_answers(
    stack: LocalStack, tmp_path: Path
) -> None:
    chat_id = chat_with_canary(stack, account(stack, "known"))
    config = f'[parameters]\n"path.chat_id" = "{chat_id}"\n'
    assert CANARY not in generated(stack, tmp_path, config=config)
