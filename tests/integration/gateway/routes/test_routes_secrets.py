"""Secrets and grants over HTTP, and what chatd is asked for them."""

from parley.api.workspace.v1 import secret_pb2
from parley.api.workspace.v1 import secret_service_pb2 as api
from support.gateway.chats import last_request
from support.gateway.stack import GatewayStack

KEY = {"Idempotency-Key": "key-1"}
ID = "00000000-0000-0000-0000-0000000000c1"
SECRET = secret_pb2.Secret(
    secret_id=ID,
    name="deploy",
    owner_id=ID,
    delivery=secret_pb2.SECRET_DELIVERY_GIT,
    hosts=["github.com:443"],
    hint="back",
    etag="3",
)
GRANT = secret_pb2.SecretGrant(
    name="deploy", delivery=secret_pb2.SECRET_DELIVERY_GIT, hosts=["github.com:443"]
)
GRANTED = {
    "name": "deploy",
    "delivery": "git",
    "hosts": ["github.com:443"],
    "header": None,
    "variable": None,
}


async def test_a_secret_is_stored_listed_and_forgotten_without_its_value(
    stack: GatewayStack,
) -> None:
    stack.chatd.answers["PutSecret"] = api.PutSecretResponse(secret=SECRET)
    body = {"name": "deploy", "value": "the-value", "hosts": ["github.com"], "delivery": "git"}
    stored = await stack.owner.request("POST", "/api/v1/secrets", body, headers=KEY)
    assert (stored.status, stored.headers["etag"]) == (200, '"3"')
    assert "value" not in stored.json()
    assert last_request(stack) == api.PutSecretRequest(
        request_id="key-1",
        secret=secret_pb2.Secret(
            name="deploy", hosts=["github.com"], delivery=secret_pb2.SECRET_DELIVERY_GIT
        ),
        value=b"the-value",
    )
    stack.chatd.answers["ListSecrets"] = api.ListSecretsResponse(secrets=[SECRET])
    listed = await stack.owner.request("GET", "/api/v1/secrets?limit=5")
    assert [item["name"] for item in listed.json()["items"]] == ["deploy"]
    stack.chatd.answers["DeleteSecret"] = api.DeleteSecretResponse()
    gone = await stack.owner.request("DELETE", f"/api/v1/secrets/{ID}", headers=KEY)
    assert gone.status == 204
    assert last_request(stack) == api.DeleteSecretRequest(request_id="key-1", secret_id=ID)


async def test_grants_of_a_workspace_are_replaced_and_listed(stack: GatewayStack) -> None:
    stack.chatd.answers["SetGrants"] = api.SetGrantsResponse(grants=[GRANT])
    path = f"/api/v1/workspaces/{ID}/grants"
    given = await stack.owner.request("PUT", path, {"secret_names": ["deploy"]}, headers=KEY)
    assert given.json()["items"] == [GRANTED]
    assert last_request(stack) == api.SetGrantsRequest(
        request_id="key-1", workspace_id=ID, secret_names=["deploy"]
    )
    stack.chatd.answers["ListGrants"] = api.ListGrantsResponse(grants=[GRANT])
    listed = await stack.owner.request("GET", path)
    assert listed.json()["items"] == [GRANTED]


async def test_uses_are_listed_with_what_became_of_them(stack: GatewayStack) -> None:
    use = secret_pb2.SecretUse(
        use_id=ID,
        workspace_id=ID,
        node_id=ID,
        secret_name="deploy",
        host="github.com:443",
        purpose="GET /a/b.git/info/refs",
        outcome=secret_pb2.SECRET_USE_OUTCOME_WRONG_HOST,
    )
    stack.chatd.answers["ListSecretUses"] = api.ListSecretUsesResponse(uses=[use])
    listed = await stack.owner.request("GET", f"/api/v1/secrets/uses?workspace_id={ID}&limit=5")
    assert listed.json()["items"] == [
        {
            "id": ID,
            "workspace_id": ID,
            "node_id": ID,
            "secret_name": "deploy",
            "host": "github.com:443",
            "purpose": "GET /a/b.git/info/refs",
            "outcome": "wrong_host",
            "used_at": None,
        }
    ]
    assert last_request(stack) == api.ListSecretUsesRequest(workspace_id=ID, page_size=5)
