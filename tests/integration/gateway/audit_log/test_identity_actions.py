"""Each change of credentials, roles, groups and identity providers is in the audit log, once."""

import base64
from pathlib import Path
from typing import Any

import pytest

from gateway.audit_log.store.reading import AuditFilter, AuditReader
from gateway.identity.engine.totp import STEP_S, code_at, step_at
from parley.postgres import Database
from support.gateway.authenticator import Authenticator
from support.gateway.browser import PASSWORD, Browser, invited, new_user
from support.gateway.issuer import CLIENT_ID, CLIENT_SECRET, fake_issuer
from support.gateway.stack import GatewayStack, gateway_stack
from support.net.http_client import HttpClient, Reply

API = "/api/v1"
ORIGIN, HOST = "http://parley.test:8080", "parley.test"


class Log:
    """Reads what was added to the audit log since it was read last."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._last_seq = 0

    async def added(self) -> list[tuple[str, str | None, str | None]]:
        """Return the action, the actor and the subject of each new entry."""
        async with Database.open(self._url, application_name="test", connections_max=2) as database:
            page = await AuditReader(database).page(AuditFilter(), before_seq=None, limit=200)
        new = [line for line in reversed(page) if line.entry.seq > self._last_seq]
        self._last_seq = page[0].entry.seq
        return [
            (
                line.entry.action,
                None if line.actor is None else line.actor.user_id,
                None if line.subject is None else line.subject.user_id,
            )
            for line in new
        ]


@pytest.fixture
async def log(identity_database: str) -> Log:
    return Log(identity_database)


async def done(client: HttpClient | Browser, method: str, path: str, body: Any = None) -> Reply:
    """Make a request that must succeed."""
    ask = client.call if isinstance(client, Browser) else client.request
    reply = await ask(method, f"{API}{path}", body)
    assert reply.status < 300, (path, reply.body)
    return reply


async def id_of(client: HttpClient | Browser) -> str:
    return str((await done(client, "GET", "/me")).json()["id"])


def code_of(stack: GatewayStack, secret: str) -> str:
    key = base64.b32decode(secret + "=" * (-len(secret) % 8))
    return code_at(key, step_at(stack.clock.now().timestamp()))


async def test_changes_of_own_credentials_are_in_the_log(stack: GatewayStack, log: Log) -> None:
    ada = await invited(stack)
    user_id = await id_of(ada)
    await log.added()
    passwords = {"current_password": PASSWORD, "new_password": "eleven loud turtles sing"}
    await done(ada, "POST", "/me/password", passwords)
    key = (await done(ada, "POST", "/me/api-keys", {"name": "laptop"})).json()
    await done(ada, "DELETE", f"/me/api-keys/{key['id']}")
    begun = (await done(ada, "POST", "/me/passkeys/options")).json()
    credential = Authenticator(ORIGIN, HOST).create(begun["options"])
    body = {"continuation": begun["continuation"], "name": "phone", "credential": credential}
    passkey = (await done(ada, "POST", "/me/passkeys", body)).json()
    await done(ada, "DELETE", f"/me/passkeys/{passkey['id']}")

    assert await log.added() == [
        (action, user_id, user_id)
        for action in (
            "password.changed",
            "api_key.created",
            "api_key.revoked",
            "passkey.added",
            "passkey.removed",
        )
    ]


async def test_second_factors_and_their_resets_are_in_the_log(
    stack: GatewayStack, log: Log
) -> None:
    ada, owner = await invited(stack), await id_of(stack.owner)
    user_id = await id_of(ada)
    await log.added()
    secret = (await done(ada, "POST", "/me/totp")).json()["secret"]
    await done(ada, "POST", "/me/totp/confirm", {"code": code_of(stack, secret)})
    stack.clock.advance(2 * STEP_S)
    codes = (await done(ada, "POST", "/me/recovery-codes", {"code": code_of(stack, secret)})).json()
    await done(ada, "POST", "/me/totp/remove", {"code": codes["recovery_codes"][0]})
    await done(stack.owner, "POST", f"/users/{user_id}/second-factors/reset")
    found = await log.added()

    assert [entry for entry in found if entry[0] != "session.ended"] == [
        ("totp.enabled", user_id, user_id),
        ("recovery_codes.replaced", user_id, user_id),
        ("recovery_codes.used", user_id, None),
        ("totp.removed", user_id, user_id),
        ("second_factors.reset", owner, user_id),
    ]


async def test_what_administrators_do_to_users_and_groups_is_in_the_log(
    stack: GatewayStack, log: Log
) -> None:
    owner, ada = await id_of(stack.owner), await new_user(stack)
    await log.added()
    await done(stack.owner, "PATCH", f"/users/{ada}", {"role": "auditor"})
    link = (await done(stack.owner, "POST", f"/users/{ada}/sign-in-links", {})).json()
    await done(stack.owner, "DELETE", f"/users/{ada}/sign-in-links/{link['id']}")
    group = (await done(stack.owner, "POST", "/groups", {"name": "one"})).json()["id"]
    await done(stack.owner, "PATCH", f"/groups/{group}", {"name": "two"})
    await done(stack.owner, "PUT", f"/groups/{group}/members/{ada}")
    await done(stack.owner, "DELETE", f"/groups/{group}/members/{ada}")
    await done(stack.owner, "DELETE", f"/groups/{group}")
    token = {"name": "program", "scopes": ["chat:read"]}
    issued = (await done(stack.owner, "POST", "/service-tokens", token)).json()
    await done(stack.owner, "DELETE", f"/service-tokens/{issued['id']}")

    assert await log.added() == [
        ("user.updated", owner, ada),
        ("sign_in_link.created", owner, ada),
        ("sign_in_link.revoked", owner, ada),
        ("group.created", owner, None),
        ("group.renamed", owner, None),
        ("group.member_added", owner, ada),
        ("group.member_removed", owner, ada),
        ("group.deleted", owner, None),
        ("service_token.issued", owner, owner),
        ("service_token.revoked", owner, owner),
    ]


class LateClock:
    """The clock of the gateway, which does not exist before it."""

    stack: GatewayStack | None = None

    def now(self) -> Any:
        """Return the time of the gateway."""
        assert self.stack is not None
        return self.stack.clock.now()


async def test_identity_providers_and_linked_identities_are_in_the_log(
    tmp_path: Path, identity_database: str, log: Log
) -> None:
    clock: Any = LateClock()
    async with (
        fake_issuer(clock) as issuer,
        gateway_stack(tmp_path, identity_database) as stack,
    ):
        clock.stack = stack
        owner, ada = await id_of(stack.owner), await invited(stack)
        user_id = await id_of(ada)
        await log.added()
        corp = {
            "display_name": "Corp",
            "issuer": issuer.url,
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
        }
        await done(stack.owner, "PUT", "/oidc-issuers/corp", corp)
        begun = (await done(ada, "POST", "/me/linked-identities", {"issuer": "corp"})).json()
        left = await ada.open(begun["path"])
        await ada.open(issuer.authorize(left.headers["location"]))
        (linked,) = (await done(ada, "GET", "/me/linked-identities")).json()["items"]
        await done(ada, "DELETE", f"/me/linked-identities/{linked['id']}")
        await done(stack.owner, "DELETE", "/oidc-issuers/corp")
        found = await log.added()

    assert found == [
        ("oidc_issuer.put", owner, None),
        ("user.identity_linked", user_id, user_id),
        ("user.identity_unlinked", user_id, user_id),
        ("oidc_issuer.deleted", owner, None),
    ]
