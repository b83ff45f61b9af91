"""Logins from their beginning to their end, against a real authorization server."""

import asyncio
from typing import Any
from urllib.parse import parse_qs, urlsplit

import grpc
import pytest

from parley.api.mcp.v1 import authorization_service_pb2 as api
from parley.api.mcp.v1 import error_reason_pb2, server_pb2, server_service_pb2, tool_pb2
from parley.identity import Role, User, UserId
from parley.postgres import Database
from parley.rpc import Problem, acting_for, problem_of
from support.mcpgateway.gateway import ADMIN, MEMBER
from support.mcpgateway.logins import REDIRECT_URI, LoginLab

OTHER = User(UserId("01900000-0000-7000-8000-00000000000c"), Role.MEMBER)


async def problem_with(call: Any) -> Problem:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return problem_of(caught.value)


async def test_a_user_logs_in_uses_the_server_and_logs_out(lab: LoginLab) -> None:
    before = await lab.listed()
    assert [tool.model_name for tool in before.tools] == []
    outcome = before.servers[0]
    assert (outcome.slug, outcome.state, outcome.reason, outcome.message) == (
        "guarded",
        server_pb2.SERVER_STATE_NEEDS_AUTHORIZATION,
        error_reason_pb2.ERROR_REASON_NEEDS_CONNECT,
        "You are not connected to Guarded. Connect your account to use it.",
    )

    location = await lab.begin()
    asked = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
    state, challenge = asked.pop("state"), asked.pop("code_challenge")
    assert (len(state), len(challenge)) == (43, 43)
    assert asked == {
        "response_type": "code",
        "client_id": "client-1",
        "redirect_uri": REDIRECT_URI,
        "code_challenge_method": "S256",
        "resource": lab.issuer.mcp_url,
        "scope": "tools offline_access",
    }
    done = await lab.complete(lab.issuer.agree(location))
    assert done == api.CompleteAuthorizationResponse(
        server_id=lab.server_id, status=server_pb2.AUTHORIZATION_STATUS_CONNECTED
    )
    assert lab.issuer.forms[0]["resource"] == lab.issuer.mcp_url
    assert lab.issuer.registrations == [
        {
            "client_name": "Parley",
            "client_uri": "https://parley.example",
            "redirect_uris": [REDIRECT_URI],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "web",
        }
    ]

    listed = await lab.listed()
    assert [tool.model_name for tool in listed.tools] == ["guarded__secret", "guarded__whoami"]
    called = await lab.call("1")
    assert (called.outcome, lab.issuer.calls) == (tool_pb2.CALL_OUTCOME_SUCCEEDED, ["alice"])
    status = await lab.status()
    assert (status.status, list(status.granted_scopes), status.message) == (
        server_pb2.AUTHORIZATION_STATUS_CONNECTED,
        ["offline_access", "tools"],
        "",
    )

    refresh_token = lab.issuer.logins[0].refresh_token
    given_up = await lab.disconnect()
    assert given_up == api.DisconnectResponse(
        was_connected=True, revocation=api.REVOCATION_OUTCOME_REVOKED
    )
    assert [(form["token"], form["token_type_hint"]) for form in lab.issuer.revoked] == [
        (refresh_token, "refresh_token")
    ]
    again = await lab.disconnect()
    assert again == api.DisconnectResponse(revocation=api.REVOCATION_OUTCOME_NOT_NEEDED)
    assert (await problem_with(lab.call("2"))).reason == "NEEDS_CONNECT"


@pytest.mark.parametrize(
    ("challenge", "listed", "asked"),
    [
        ("tools", ["more"], "tools offline_access"),
        ("", ["more", "tools"], "more tools offline_access"),
        # Without either, what the authorization server has is not asked for.
        ("", [], None),
    ],
)
async def test_scopes_are_those_of_the_refusal_and_else_those_that_the_server_lists(
    lab: LoginLab, challenge: str, listed: list[str], asked: str | None
) -> None:
    lab.issuer.scope_in_challenge = challenge
    lab.issuer.resource_metadata = {"scopes_supported": listed}
    lab.issuer.agree(await lab.begin())
    assert lab.issuer.asked[-1].get("scope") == asked


async def test_two_users_never_use_each_others_login(lab: LoginLab) -> None:
    await lab.log_in(MEMBER, "alice")
    assert (await problem_with(lab.call("1", OTHER))).reason == "NEEDS_CONNECT"
    await lab.log_in(OTHER, "bob")

    await lab.call("2", MEMBER)
    await lab.call("2", OTHER)
    await lab.disconnect(OTHER)
    await lab.call("3", MEMBER)
    assert lab.issuer.calls == ["alice", "bob", "alice"]
    assert (await lab.status(ADMIN)).status == server_pb2.AUTHORIZATION_STATUS_NOT_CONNECTED


async def test_a_login_is_listed_and_given_up_after_access_to_the_server_was_lost(
    lab: LoginLab,
) -> None:
    await lab.log_in()
    before = await lab.logins()
    with acting_for(ADMIN):
        request = server_service_pb2.UpdateServerRequest(
            request_id="restrict",
            server_id=lab.server_id,
            settings=server_pb2.McpServerSettings(is_enabled=False),
        )
        request.update_mask.paths.append("is_enabled")
        await lab.gateway.servers.UpdateServer(request)
    lost, of_other = await lab.logins(), await lab.logins(OTHER)
    given_up = await lab.disconnect()

    assert [(each.slug, each.is_usable) for each in before] == [("guarded", True)]
    assert [(each.server_id, each.status, each.is_usable) for each in lost] == [
        (lab.server_id, server_pb2.AUTHORIZATION_STATUS_CONNECTED, False)
    ]
    assert of_other == []
    assert (given_up.was_connected, given_up.revocation) == (True, api.REVOCATION_OUTCOME_REVOKED)
    assert await lab.logins() == []


async def test_a_login_is_completed_once_by_its_user_in_its_browser(lab: LoginLab) -> None:
    stranger = await problem_with(lab.complete(lab.issuer.agree(await lab.begin()), OTHER))
    answer = lab.issuer.agree(await lab.begin(request_id="2"))
    elsewhere = await problem_with(lab.complete(answer, browser="c" * 43))
    unknown = await problem_with(lab.complete({"state": "x" * 43, "code": "y"}))
    assert (stranger.reason, elsewhere.reason, unknown.reason, lab.issuer.forms) == (
        "FLOW_MISMATCH",
        "FLOW_MISMATCH",
        "FLOW_EXPIRED",
        [],
    )

    answer = lab.issuer.agree(await lab.begin(request_id="3"))
    first = await lab.complete(answer)
    repeated = await lab.complete(answer)
    replayed = await problem_with(lab.complete(answer, request_id="other"))
    assert (first, replayed.reason, len(lab.issuer.forms)) == (repeated, "FLOW_CONSUMED", 1)


@pytest.mark.parametrize(
    ("sends_issuer", "said", "reason"),
    [
        (True, "right", None),
        (True, "wrong", "ISSUER_MISMATCH"),
        (True, "absent", "ISSUER_MISMATCH"),
        (False, "right", None),
        (False, "wrong", "ISSUER_MISMATCH"),
        (False, "absent", None),
    ],
)
async def test_an_answer_of_another_issuer_is_refused(
    lab: LoginLab, sends_issuer: bool, said: str, reason: str | None
) -> None:
    assert lab.issuer.metadata is not None
    lab.issuer.metadata["authorization_response_iss_parameter_supported"] = sends_issuer
    issuers = {"right": lab.issuer.url, "wrong": "https://evil.example", "absent": None}
    answer = lab.issuer.agree(await lab.begin(), iss=issuers[said])
    if reason is None:
        await lab.complete(answer)
    else:
        assert (await problem_with(lab.complete(answer))).reason == reason
    assert len(lab.issuer.forms) == (1 if reason is None else 0)


async def test_what_a_wrong_issuer_says_is_not_shown(lab: LoginLab) -> None:
    declined = {"error": "access_denied", "error_description": "Call 555 now", "code": ""}
    answer = lab.issuer.agree(await lab.begin(), **declined)
    said = await problem_with(lab.complete(answer))
    answer = lab.issuer.agree(await lab.begin(request_id="2"), iss="https://evil", **declined)
    hidden = await problem_with(lab.complete(answer))
    assert (said.reason, said.metadata["error"], "Call 555" in said.message) == (
        "AUTHORIZATION_DECLINED",
        "access_denied",
        True,
    )
    assert (hidden.reason, "555" in hidden.message) == ("ISSUER_MISMATCH", False)


async def test_a_login_during_which_the_server_changed_is_refused(lab: LoginLab) -> None:
    answer = lab.issuer.agree(await lab.begin())
    await update(lab, "u", "url", url=f"{lab.issuer.url}/other")
    # The flow is deleted together with all logins of the old address.
    assert (await problem_with(lab.complete(answer))).reason == "FLOW_EXPIRED"
    assert lab.issuer.forms == []


async def update(lab: LoginLab, request_id: str, path: str, **settings: Any) -> None:
    """Change one setting of the server as an administrator."""
    request = server_service_pb2.UpdateServerRequest(
        request_id=request_id,
        server_id=lab.server_id,
        settings=server_pb2.McpServerSettings(**settings),
    )
    request.update_mask.paths.append(path)
    with acting_for(ADMIN):
        await lab.gateway.servers.UpdateServer(request)


async def test_a_server_that_changes_during_the_exchange_gets_no_login(
    lab: LoginLab, database: Database
) -> None:
    answer = lab.issuer.agree(await lab.begin())
    lab.issuer.exchange_gate.clear()
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        completing = tasks.create_task(problem_with(lab.complete(answer)))
        await lab.issuer.exchanging.wait()
        await update(lab, "u", "oauth.client_id", oauth={"client_id": "another"})
        lab.issuer.exchange_gate.set()
    problem = completing.result()
    assert (problem.reason, problem.status) == ("CONFIG_SUPERSEDED", grpc.StatusCode.ABORTED)
    assert await database.pool.fetchval("SELECT count(*) FROM mcp.grants") == 0
    assert (await lab.status()).status == server_pb2.AUTHORIZATION_STATUS_NOT_CONNECTED


async def test_a_login_ends_when_what_it_was_made_for_changes_and_not_else(
    lab: LoginLab, database: Database
) -> None:
    issuer = lab.issuer.url
    oauth = {"authorization_url": f"{issuer}/authorize", "token_url": f"{issuer}/token"}
    oauth |= {"client_id": "one", "revocation_url": f"{issuer}/revoke", "issuer": issuer}
    await update(lab, "begin", "oauth", oauth=oauth)
    kept = {"description": "x", "is_trusted": True, "tool_deny_list": ["secret"]}
    ended: dict[str, dict[str, Any]] = {
        "oauth.revocation_url": {"oauth": {"revocation_url": f"{issuer}/other"}},
        "oauth.client_id": {"oauth": {"client_id": "two"}},
        "oauth.token_url": {"oauth": {"token_url": f"{issuer}/token?x=1"}},
        "auth_kind": {"auth_kind": server_pb2.AUTH_KIND_NONE},
        "url": {"url": f"{lab.issuer.mcp_url}/"},
    }

    async def grants() -> int:
        found: int = await database.pool.fetchval("SELECT count(*) FROM mcp.grants")
        return found

    for path, settings in ended.items():
        await lab.log_in()
        for name, value in kept.items():
            await update(lab, f"{name}-{path}", name, **{name: value})
        assert (path, await grants()) == (path, 1)
        assert (await lab.status()).status == server_pb2.AUTHORIZATION_STATUS_CONNECTED
        await update(lab, path, path, **settings)
        assert (path, await grants()) == (path, 0)
        if path == "auth_kind":
            await update(lab, "back", path, auth_kind=server_pb2.AUTH_KIND_OAUTH2)
            await update(lab, "oauth-back", "oauth", oauth=oauth)
        assert (await lab.status()).status == server_pb2.AUTHORIZATION_STATUS_NOT_CONNECTED


async def test_more_scopes_are_asked_for_together_with_the_old_ones(lab: LoginLab) -> None:
    lab.issuer.needed_scope = "more"
    await lab.log_in()
    lacking = await lab.call("1", tool="secret")
    assert (lacking.outcome, lacking.reason, lacking.message) == (
        tool_pb2.CALL_OUTCOME_FAILED,
        error_reason_pb2.ERROR_REASON_INSUFFICIENT_SCOPE,
        "Guarded asks for more permissions: more. Connect again to grant them.",
    )
    status = await lab.status()
    assert (status.status, list(status.missing_scopes)) == (
        server_pb2.AUTHORIZATION_STATUS_INSUFFICIENT_SCOPE,
        ["more"],
    )
    assert (await lab.call("2")).outcome == tool_pb2.CALL_OUTCOME_SUCCEEDED

    await lab.log_in()
    assert lab.issuer.asked[-1]["scope"] == "tools offline_access more"
    assert (await lab.call("3", tool="secret")).outcome == tool_pb2.CALL_OUTCOME_SUCCEEDED
    assert (await lab.status()).status == server_pb2.AUTHORIZATION_STATUS_CONNECTED


async def test_a_server_that_wants_granted_scopes_for_ever_makes_nobody_connect_again(
    lab: LoginLab,
) -> None:
    lab.issuer.needed_scope, lab.issuer.keeps_refusing = "more", True
    await lab.log_in()
    first = await lab.call("1", tool="secret")
    assert first.reason == error_reason_pb2.ERROR_REASON_INSUFFICIENT_SCOPE
    await lab.log_in()
    assert "more" in lab.issuer.logins[-1].scopes
    for number in (2, 3):
        before = lab.issuer.refusals
        again = await lab.call(str(number), tool="secret")
        assert again.outcome == tool_pb2.CALL_OUTCOME_FAILED
        assert again.reason != error_reason_pb2.ERROR_REASON_INSUFFICIENT_SCOPE
        # It is sent once: another login would be refused for the same reason.
        assert lab.issuer.refusals == before + 1
        assert (await lab.status()).status == server_pb2.AUTHORIZATION_STATUS_CONNECTED
    assert lab.issuer.refreshes == []


async def test_calls_with_one_login_do_not_wait_for_each_other(lab: LoginLab) -> None:
    await lab.log_in()
    lab.issuer.call_gate.clear()
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        calls = [tasks.create_task(lab.call(str(number))) for number in range(5)]
        # All of them are at the server before the first one is answered.
        for _ in calls:
            await lab.issuer.called.acquire()
        lab.issuer.call_gate.set()
    assert {call.result().outcome for call in calls} == {tool_pb2.CALL_OUTCOME_SUCCEEDED}
