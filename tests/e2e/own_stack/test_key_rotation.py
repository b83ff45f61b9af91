"""All keys are rotated while the stack works, killed on the way, and the old ones refused."""

import os
import signal
import subprocess
import threading
import urllib.error
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from parley.cli.keys.signing import signing_key_ids
from parley.secrets import Keyring, Sealed, SecretBox
from support.stack.faulty_stack import FaultyStack, watching
from support.stack.local_stack import COMMAND_S_MAX, LocalStack

pytestmark = pytest.mark.slow

SECRETS = 700
INSERT_SECRET = """
    INSERT INTO chat.secrets (id, owner_id, name, description, username, delivery, hosts, header,
        hint, sealed, sealed_key_id, version, request_hash, created_at, changed_at)
    VALUES ($1, $2, $3, '', '', 'git', '{}', '', '', $4, $5, 1, '', now(), now())
"""
INSERT_TOTP = """
    INSERT INTO identity.totp_secrets (id, user_id, secret, secret_key_id, last_step, created_at)
    SELECT $1, id, $2, $3, 0, now() FROM identity.users LIMIT 1
"""
SET_CREDENTIALS = """
    UPDATE mcp.servers SET credentials = $2, credentials_key_id = $3 WHERE id = $1
"""
#: Table, ciphertexts and ids of keys.
COLUMNS = (
    ("chat.provider_keys", "sealed", "sealed_key_id"),
    ("chat.secrets", "sealed", "sealed_key_id"),
    ("identity.totp_secrets", "secret", "secret_key_id"),
    ("mcp.servers", "credentials", "credentials_key_id"),
)


@pytest.fixture
def own_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    stack = LocalStack.at(tmp_path_factory.mktemp("home"))
    started = stack.up("--chatd", "2", "--gateway", "1")
    assert started.returncode == 0, started.stdout + started.stderr
    yield stack
    stack.parley("down")


async def store_values(watched: FaultyStack, keyring: Keyring) -> None:
    """Store values in every encrypted column."""
    box, connection = SecretBox(keyring), watched.connection
    provider = watched.request(
        "POST",
        "/providers",
        {"name": "own", "type": "anthropic", "base_url": "https://models.example/v1"},
    )
    watched.request(
        "POST", "/provider-keys", {"provider_id": provider["id"], "key": "sk-own-0123456789"}
    )
    owner_id = await connection.fetchval("SELECT id FROM identity.users LIMIT 1")
    for number in range(SECRETS):
        row_id = str(uuid.UUID(int=number + 1))
        sealed = box.seal(b"value", table="chat.secrets", column="sealed", row_id=row_id)
        name = f"secret-{number}"
        await connection.execute(
            INSERT_SECRET, row_id, str(owner_id), name, sealed.ciphertext, sealed.key_id
        )
    totp_id = str(uuid.UUID(int=1))
    sealed = box.seal(b"totp", table="identity.totp_secrets", column="secret", row_id=totp_id)
    await connection.execute(INSERT_TOTP, totp_id, sealed.ciphertext, sealed.key_id)
    server_id = str(await connection.fetchval("SELECT id FROM mcp.servers LIMIT 1"))
    place = {"table": "mcp.servers", "column": "credentials", "row_id": server_id}
    sealed = box.seal(b"{}", **place)
    await connection.execute(SET_CREDENTIALS, server_id, sealed.ciphertext, sealed.key_id)


async def opened(watched: FaultyStack, keyring: Keyring) -> dict[str, int]:
    """Open every stored value with a keyring, and return how many there are by table."""
    counts = {}
    for table, column, key_column in COLUMNS:
        rows = await watched.connection.fetch(
            f"SELECT id, {column} AS sealed, {key_column} AS key_id FROM {table} "
            f"WHERE {column} IS NOT NULL"
        )
        for row in rows:
            SecretBox(keyring).open(
                Sealed(row["sealed"], row["key_id"]),
                table=table,
                column=column,
                row_id=str(row["id"]),
            )
        counts[table] = len(rows)
    return counts


@contextmanager
def working(watched: FaultyStack) -> Iterator[list[str]]:
    """Create chats and store secrets again and again; yield what failed."""
    failures: list[str] = []
    done = threading.Event()

    def work() -> None:
        number = 0
        while not done.is_set():
            number += 1
            body = {
                "name": f"written-{number}",
                "delivery": "git",
                "hosts": ["git.example"],
                "value": "written while keys are rotated",
            }
            try:
                watched.create("run: true", key=f"work-{number}")
                watched.request("POST", "/secrets", body, key=f"secret-{number}")
                watched.request("GET", "/providers")
            except urllib.error.URLError as error:
                text = error.read().decode() if isinstance(error, urllib.error.HTTPError) else ""
                failures.append(f"{error} {text}")

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield failures
    finally:
        done.set()
        worker.join()


def rotate_until_killed(stack: LocalStack, lines: int) -> str:
    """Begin or continue the rotation, and kill it without warning after some lines."""
    command = stack.command("keys", "rotate", "--overlap", "3")
    told = []
    with subprocess.Popen(
        command, env=stack.variables(), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            told.append(line)
            if len(told) == lines:
                os.kill(process.pid, signal.SIGKILL)
                break
        process.wait(COMMAND_S_MAX)
    return "".join(told)


async def test_all_keys_are_rotated_while_the_stack_works_and_no_request_fails(
    own_stack: LocalStack,
) -> None:
    stack, home = own_stack, own_stack.home
    old, old_signing = Keyring.load(home.master_key_file), signing_key_ids(home)
    async with watching(stack) as watched:
        await store_values(watched, old)
        with working(watched) as failures:
            rotated = stack.parley("keys", "rotate", "--overlap", "3")
        assert (rotated.returncode, failures) == (0, []), rotated.stdout + rotated.stderr
        new = Keyring.load(home.master_key_file)
        assert len(new.keys) == 1
        counts = await opened(watched, new)
        assert counts["chat.secrets"] > SECRETS
        assert {name: counts[name] for name, _, _ in COLUMNS if name != "chat.secrets"} == {
            "chat.provider_keys": 1,
            "identity.totp_secrets": 1,
            "mcp.servers": 1,
        }
        audited = stack.parley("audit", "--live")
        assert audited.returncode == 0, audited.stdout
    assert not set(signing_key_ids(home).values()) & set(old_signing.values())
    assert stack.parley("down").returncode == 0
    home.master_key_file.write_bytes(b"")
    old.save(home.master_key_file)
    refused = stack.up()
    assert refused.returncode == 2
    assert "start with the key file that belongs to this database" in refused.stderr
    new.save(home.master_key_file)


def is_service(process: psutil.Process) -> bool:
    try:
        words = process.cmdline()
    except psutil.NoSuchProcess:
        return False
    return any(word in ("chatd", "gateway", "mcpgateway") for word in words)


async def test_a_rotation_is_finished_after_kills_of_the_command_and_of_services(
    own_stack: LocalStack,
) -> None:
    stack, home = own_stack, own_stack.home
    old = Keyring.load(home.master_key_file)
    async with watching(stack) as watched:
        await store_values(watched, old)
        for lines in (1, 2, 3, 4, 5):
            rotate_until_killed(stack, lines)
            victims = [process for process in stack.everyone() if is_service(process)]
            victims[lines % len(victims)].kill()
            status = stack.parley("keys", "status")
            assert status.returncode == 0, status.stderr
        rotated = stack.parley("keys", "rotate", "--overlap", "3")
        assert rotated.returncode == 0, rotated.stdout + rotated.stderr
        new = Keyring.load(home.master_key_file)
        assert (len(new.keys), new.keys[0] in old.keys) == (1, False)
        assert (await opened(watched, new))["chat.secrets"] == SECRETS
    answered = stack.parley("run", "hello")
    assert answered.returncode == 0, answered.stderr
