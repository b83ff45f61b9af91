"""Every route times every role: the roles of all routes are listed here, and each is asked."""

import re
from typing import Final

import asyncpg
import pytest

from gateway.api.contract import access_table
from gateway.http.limits.admission import Duration
from gateway.http.route_access import Need
from parley.identity import ApiKey, Role
from parley.identity.rules import ANY_SCOPE
from support.gateway.stack import GatewayStack
from support.gateway.users import INSERT_KEY, USER_ID, client_with
from support.net.http_client import HttpClient

ADMINISTRATORS: Final = """
    POST /api/v1/approval-rules
    DELETE /api/v1/approval-rules/{rule_id}
    PATCH /api/v1/approval-rules/{rule_id}
    POST /api/v1/break-glass
    DELETE /api/v1/break-glass/{access_id}
    POST /api/v1/groups
    DELETE /api/v1/groups/{group_id}
    PATCH /api/v1/groups/{group_id}
    DELETE /api/v1/groups/{group_id}/members/{user_id}
    PUT /api/v1/groups/{group_id}/members/{user_id}
    GET /api/v1/hooks
    POST /api/v1/hooks
    DELETE /api/v1/hooks/{hook_id}
    GET /api/v1/hooks/{hook_id}
    PATCH /api/v1/hooks/{hook_id}
    GET /api/v1/hooks/{hook_id}/deliveries
    POST /api/v1/hooks/{hook_id}/rotate-secret
    POST /api/v1/hooks/{hook_id}/test
    POST /api/v1/mcp/probe
    POST /api/v1/mcp/servers
    DELETE /api/v1/mcp/servers/{server_id}
    PATCH /api/v1/mcp/servers/{server_id}
    POST /api/v1/mcp/servers/{server_id}/probe
    POST /api/v1/mcp/servers/{server_id}/tools/approve
    DELETE /api/v1/model-overrides/{purpose}
    PUT /api/v1/model-overrides/{purpose}
    POST /api/v1/models
    DELETE /api/v1/models/{model_id}
    PATCH /api/v1/models/{model_id}
    GET /api/v1/nodes
    GET /api/v1/oidc-issuers
    DELETE /api/v1/oidc-issuers/{name}
    PUT /api/v1/oidc-issuers/{name}
    POST /api/v1/provider-keys
    DELETE /api/v1/provider-keys/{key_id}
    GET /api/v1/providers
    POST /api/v1/providers
    DELETE /api/v1/providers/{provider_id}
    GET /api/v1/providers/{provider_id}
    PATCH /api/v1/providers/{provider_id}
    POST /api/v1/providers/{provider_id}/check
    PUT /api/v1/providers/{provider_id}/key-order
    GET /api/v1/retention
    POST /api/v1/service-tokens
    DELETE /api/v1/service-tokens/{token_id}
    PATCH /api/v1/settings
    PUT /api/v1/settings/advisor
    GET /api/v1/spend-limits
    DELETE /api/v1/spend-limits/everyone
    PUT /api/v1/spend-limits/everyone
    DELETE /api/v1/spend-limits/groups/{group_id}
    PUT /api/v1/spend-limits/groups/{group_id}
    DELETE /api/v1/spend-limits/users/{user_id}
    PUT /api/v1/spend-limits/users/{user_id}
    POST /api/v1/templates
    DELETE /api/v1/templates/{template_id}
    PATCH /api/v1/templates/{template_id}
    GET /api/v1/usage
    POST /api/v1/users
    DELETE /api/v1/users/{user_id}
    PATCH /api/v1/users/{user_id}
    GET /api/v1/users/{user_id}/api-keys
    POST /api/v1/users/{user_id}/api-keys
    DELETE /api/v1/users/{user_id}/api-keys/{api_key_id}
    POST /api/v1/users/{user_id}/deactivate
    GET /api/v1/users/{user_id}/exports
    POST /api/v1/users/{user_id}/exports
    GET /api/v1/users/{user_id}/exports/{export_id}/archive
    POST /api/v1/users/{user_id}/reactivate
    POST /api/v1/users/{user_id}/second-factors/reset
    GET /api/v1/users/{user_id}/sign-in-links
    POST /api/v1/users/{user_id}/sign-in-links
    DELETE /api/v1/users/{user_id}/sign-in-links/{link_id}
    PUT /api/v1/workspaces/{workspace_id}/policy
"""
ADMINISTRATORS_AND_AUDITORS: Final = """
    GET /api/v1/audit-log
    GET /api/v1/audit-log/export
    GET /api/v1/audit-log/retention
    GET /api/v1/audit-log/verification
    GET /api/v1/groups
    GET /api/v1/groups/{group_id}/members
    GET /api/v1/mcp/servers/{server_id}/changes
    GET /api/v1/service-tokens
    GET /api/v1/users
    GET /api/v1/users/{user_id}
    GET /api/v1/users/{user_id}/groups
    GET /api/v1/users/{user_id}/usage
"""
EVERYONE: Final = """
    GET /api/v1/approval-rules
    GET /api/v1/break-glass
    GET /api/v1/chats/{chat_id}/usage
    GET /api/v1/groups/{group_id}
    GET /api/v1/mcp/calls
    GET /api/v1/mcp/servers
    GET /api/v1/mcp/servers/{server_id}
    GET /api/v1/mcp/servers/{server_id}/login
    GET /api/v1/mcp/servers/{server_id}/tools
    GET /api/v1/me
    PATCH /api/v1/me
    GET /api/v1/me/api-keys
    POST /api/v1/me/api-keys
    DELETE /api/v1/me/api-keys/{api_key_id}
    GET /api/v1/me/exports
    POST /api/v1/me/exports
    GET /api/v1/me/exports/{export_id}/archive
    GET /api/v1/me/groups
    GET /api/v1/me/linked-identities
    POST /api/v1/me/linked-identities
    DELETE /api/v1/me/linked-identities/{linked_identity_id}
    POST /api/v1/me/passkeys
    POST /api/v1/me/passkeys/options
    DELETE /api/v1/me/passkeys/{passkey_id}
    POST /api/v1/me/password
    POST /api/v1/me/recovery-codes
    GET /api/v1/me/second-factors
    GET /api/v1/me/sessions
    DELETE /api/v1/me/sessions/{session_id}
    POST /api/v1/me/totp
    POST /api/v1/me/totp/confirm
    POST /api/v1/me/totp/remove
    GET /api/v1/model-overrides
    GET /api/v1/models
    GET /api/v1/models/{model_id}
    GET /api/v1/people
    GET /api/v1/settings
    GET /api/v1/settings/advisor
    POST /api/v1/sign-out
"""
OPEN: Final = """
    GET /
    GET /.well-known/mcp-client.json
    GET /account
    GET /admin
    GET /admin/{section}
    GET /api/v1/configuration
    POST /api/v1/sign-in
    POST /api/v1/sign-in/link
    POST /api/v1/sign-in/link/password
    POST /api/v1/sign-in/passkey
    POST /api/v1/sign-in/passkey/options
    POST /api/v1/sign-in/second-factor
    GET /assets/{name}
    GET /chats/{chat_id}
    GET /connection
    GET /docs
    GET /healthz
    GET /link
    POST /link
    GET /login
    POST /login
    POST /login/code
    GET /login/oidc/{issuer}
    GET /login/oidc/{issuer}/callback
    POST /logout
    GET /mcp/callback
    GET /mcp/login/{server_id}
    GET /openapi.json
    GET /problems
    GET /problems/{code}
    GET /races
    GET /races/{race_id}
    GET /readyz
    GET /settings
    GET /settings/{section}
    GET /sign-in
    GET /service-worker.js
    GET /terminal
    GET /waiting
"""
#: All other routes are for those who work in chats.
MEMBERS_COUNT: Final = 154

ABSENT: Final = "00000000-0000-0000-0000-00000000dead"
SCOPED_KEY: Final = """
    INSERT INTO identity.api_keys (id, user_id, digest, is_from_setting, created_at, scopes)
    VALUES ($1, $2, $3, false, now(), '{mcp:call}')
"""
LISTED: Final = {
    ADMINISTRATORS: frozenset({Role.OWNER, Role.ADMIN}),
    ADMINISTRATORS_AND_AUDITORS: frozenset({Role.OWNER, Role.ADMIN, Role.AUDITOR}),
    EVERYONE: frozenset(Role),
    OPEN: frozenset[Role](),
}
MEMBERS: Final = frozenset({Role.OWNER, Role.ADMIN, Role.MEMBER})

Route = tuple[str, str]


def routes_in(text: str) -> list[Route]:
    return [(method, path) for method, path in (line.split() for line in text.split("\n") if line)]


def expected_roles() -> dict[Route, frozenset[Role]]:
    named = {route: roles for text, roles in LISTED.items() for route in routes_in(text)}
    return {route: named.get(route, MEMBERS) for route in access_table()}


def signed_in_routes() -> list[Route]:
    return [route for route, rule in access_table().items() if rule.need is Need.SIGN_IN]


def path_of(path: str) -> str:
    return re.sub(r"\{[a-z_]+\}", ABSENT, path)


async def asked(client: HttpClient, route: Route) -> tuple[int, str]:
    """Return the status and the code of the answer to a request without a body."""
    reply = await client.request(route[0], path_of(route[1]))
    is_problem = reply.headers.get("content-type", "").startswith("application/problem+json")
    return reply.status, reply.json()["code"] if is_problem else ""


def with_key(stack: GatewayStack, key: ApiKey) -> HttpClient:
    return HttpClient(stack.gateway.http.port, {"Authorization": f"Bearer {key.reveal()}"})


def test_the_roles_of_every_route_are_those_listed_here() -> None:
    declared = {route: rule.roles for route, rule in access_table().items()}
    listed = [route for text in LISTED for route in routes_in(text)]

    assert [route for route in listed if route not in declared] == []
    assert declared == expected_roles()
    assert len(declared) - len(listed) == MEMBERS_COUNT


async def test_g1_nobody_and_foreign_and_revoked_keys_are_refused_by_every_route(
    stack: GatewayStack, identity_database: str
) -> None:
    revoked, client = ApiKey.generate(), await client_with(stack, identity_database, Role.OWNER)
    assert (await client.request("GET", "/api/v1/me")).status == 200
    connection = await asyncpg.connect(identity_database)
    try:
        await connection.execute(INSERT_KEY, revoked.id, USER_ID, revoked.digest())
        await connection.execute(
            "UPDATE identity.api_keys SET revoked_at = now() WHERE id = $1", revoked.id
        )
    finally:
        await connection.close()
    wrong = [
        (route, answer)
        for route in signed_in_routes()
        for answer in (
            await asked(stack.anonymous, route),
            await asked(with_key(stack, ApiKey.generate()), route),
            await asked(with_key(stack, revoked), route),
        )
        if answer not in ((401, "UNAUTHENTICATED"), (401, "INVALID_API_KEY"))
    ]

    assert wrong == []


@pytest.mark.parametrize("role", list(Role))
async def test_g1_every_route_answers_every_role_as_listed(
    stack: GatewayStack, identity_database: str, role: Role
) -> None:
    client = await client_with(stack, identity_database, role)
    expected, wrong = expected_roles(), list[tuple[Route, int, str]]()
    for route in signed_in_routes():
        is_allowed = role in expected[route]
        if is_allowed and access_table()[route].duration is not Duration.SHORT:
            continue  # Streams, which would stay open; other tests read them.
        status, code = await asked(client, route)
        is_refused = (status, code) == (403, "FORBIDDEN")
        if is_refused is is_allowed or status == 401 or status == 500:
            wrong.append((route, status, code))

    assert wrong == []


async def test_g1_a_key_with_another_scope_is_refused_by_every_route(
    stack: GatewayStack, identity_database: str
) -> None:
    await client_with(stack, identity_database, Role.OWNER)
    key = ApiKey.generate()
    connection = await asyncpg.connect(identity_database)
    try:
        await connection.execute(SCOPED_KEY, key.id, USER_ID, key.digest())
    finally:
        await connection.close()
    client = with_key(stack, key)
    enough = ("mcp:call", ANY_SCOPE)
    others = [route for route in signed_in_routes() if access_table()[route].scope not in enough]
    answers = {route: await asked(client, route) for route in others}

    assert {route: each for route, each in answers.items() if each != (403, "SCOPE_MISSING")} == {}
