"""Secrets over gRPC: who may, what comes back, what a node gets, and what is on record."""

from contextlib import suppress
from typing import Any

import pytest

from chatd.offboarding.store.suspended_users import DELETE_REST
from chatd.primitives.domain.errors import ChatError
from chatd.workspaces.domain.secrets import SecretNotGranted
from chatd.workspaces.domain.templates import SCRATCH_ID
from parley.api.workspace.v1 import node_pb2, secret_pb2
from parley.api.workspace.v1 import node_service_pb2 as nodes_api
from parley.api.workspace.v1 import secret_service_pb2 as api
from parley.api.workspace.v1 import workspace_service_pb2 as workspaces_api
from support.chatd.chats.chat_people import ANN_ID, Person
from support.chatd.chats.served_chats import ServedChats
from support.chatd.workspaces.catalogue_calls import READY, hosted
from support.chatd.workspaces.served_catalogue import ADDRESS, Catalogue

VALUE = b"ghp_the-value-that-never-comes-back"
NODE_ID = "00000000-0000-0000-0000-0000000000f1"
NO_CONTEXT: Any = None


async def put(person: Person, name: str = "deploy", value: bytes = VALUE, **more: Any) -> Any:
    secret_fields: dict[str, Any] = {
        "name": name,
        "hosts": ["GitHub.com"],
        "delivery": secret_pb2.SECRET_DELIVERY_GIT,
        **more.pop("secret", {}),
    }
    more.setdefault("request_id", person.fresh())
    request = api.PutSecretRequest(secret=secret_pb2.Secret(**secret_fields), value=value, **more)
    return (await person.ask(request)).secret


async def grant(person: Person, workspace_id: str, *names: str) -> Any:
    request = api.SetGrantsRequest(
        request_id=person.fresh(), workspace_id=workspace_id, secret_names=names
    )
    return (await person.ask(request)).grants


async def ready_workspace(person: Person, catalogue: Catalogue) -> str:
    """Make a workspace on a node that is registered."""
    node = node_pb2.Node(node_id=NODE_ID, address="unix:/run/one.sock", name="one")
    node.capacity.workspaces = 10
    registered = await catalogue.servicers[1].RegisterNode(
        nodes_api.RegisterNodeRequest(request_id="register", node=node), NO_CONTEXT
    )
    assert registered.registration_epoch == 1
    await catalogue.known.refresh()
    made = await person.ask(
        workspaces_api.CreateWorkspaceRequest(request_id=person.fresh(), template_id=SCRATCH_ID)
    )
    await catalogue.drive()
    workspace_id: str = made.workspace.workspace_id
    assert (await catalogue.store.get(workspace_id)).node_id == NODE_ID
    return workspace_id


def wish(given_id: str, **more: Any) -> nodes_api.UseSecretRequest:
    fields: dict[str, Any] = {
        "request_id": "use-1",
        "node_id": NODE_ID,
        "registration_epoch": 1,
        "workspace_id": given_id,
        "epoch": 1,
        "secret_name": "deploy",
        "host": "github.com:443",
        "purpose": "GET /a/b.git/info/refs",
        **more,
    }
    return nodes_api.UseSecretRequest(**fields)


async def test_a_value_goes_in_and_never_comes_back(served: ServedChats) -> None:
    ann = served.ann
    stored = await put(ann, request_id="one", secret={"username": "ada", "description": "CI"})
    again = await put(ann, request_id="one", secret={"username": "ada", "description": "CI"})
    listed = await ann.ask(api.ListSecretsRequest())

    assert (stored.name, stored.owner_id, stored.hint, stored.etag) == (
        *("deploy", ANN_ID, "back", "1"),
    )
    assert [*stored.hosts] == ["github.com:443"]
    assert again == stored
    assert [*listed.secrets] == [stored]
    assert VALUE not in listed.SerializeToString()
    row = await served.pool.fetchrow("SELECT * FROM chat.secrets")
    assert row is not None
    assert not any(VALUE in each for each in row.values() if isinstance(each, bytes))


async def test_the_same_request_with_another_value_is_refused(served: ServedChats) -> None:
    await put(served.ann, request_id="one")
    request = api.PutSecretRequest(
        request_id="one",
        secret=secret_pb2.Secret(
            name="deploy", hosts=["GitHub.com"], delivery=secret_pb2.SECRET_DELIVERY_GIT
        ),
        value=b"another",
    )

    assert (await served.ann.refusal(request)).reason == "REQUEST_ID_REUSED"


async def test_a_new_value_takes_the_place_of_the_old(served: ServedChats) -> None:
    first = await put(served.ann)
    kept = await put(served.ann, value=b"", secret={"etag": first.etag, "description": "more"})
    changed = await put(served.ann, value=b"0123456789-other")
    stale = api.PutSecretRequest(
        request_id="x",
        secret=secret_pb2.Secret(name="deploy", hosts=["a.org"], etag=first.etag),
    )

    assert (kept.secret_id, kept.etag, kept.hint) == (first.secret_id, "2", "back")
    assert (changed.secret_id, changed.etag, changed.hint) == (first.secret_id, "3", "ther")
    assert (await served.ann.refusal(stale)).reason == "VERSION_CONFLICT"


@pytest.mark.parametrize(
    "change",
    [
        {"hosts": ["github.com", "evil.test"]},
        {"hosts": ["evil.test"]},
        {"hosts": ["github.com:8443"]},
        {"hosts": ["*.github.com"]},
        {"delivery": secret_pb2.SECRET_DELIVERY_ENVIRONMENT},
        {"delivery": secret_pb2.SECRET_DELIVERY_PROXY},
        {"header": "X-Request-Id"},
    ],
)
async def test_a_stored_value_is_not_sent_elsewhere_or_otherwise(
    served: ServedChats, change: dict[str, Any]
) -> None:
    await put(served.ann)
    secret_fields: dict[str, Any] = {
        "name": "deploy",
        "hosts": ["github.com"],
        "delivery": secret_pb2.SECRET_DELIVERY_GIT,
        **change,
    }
    request = api.PutSecretRequest(request_id="move", secret=secret_pb2.Secret(**secret_fields))

    assert (await served.ann.refusal(request)).reason == "SECRET_VALUE_NEEDED"
    (kept,) = (await served.ann.ask(api.ListSecretsRequest())).secrets
    assert (kept.hosts, kept.etag) == (["github.com:443"], "1")


async def test_fewer_hosts_need_no_value_and_new_ones_do_and_are_audited(
    served: ServedChats, caplog: pytest.LogCaptureFixture
) -> None:
    await put(served.ann, secret={"hosts": ["github.com", "*.github.com"]})

    fewer = await put(served.ann, value=b"", secret={"hosts": ["api.github.com"]})
    moved = await put(served.ann, value=b"0123456789-other", secret={"hosts": ["a.test"]})

    assert fewer.hosts == ["api.github.com:443"]
    assert moved.hosts == ["a.test:443"]
    changes = [vars(each) for each in caplog.records if each.name == "parley.audit"]
    assert [(each["action"], each["user_id"], each["secret_name"]) for each in changes] == [
        ("secret.hosts_changed", ANN_ID, "deploy")
    ] * 2
    assert [(each["old_hosts"], each["new_hosts"]) for each in changes] == [
        (("github.com:443", "*.github.com:443"), ("api.github.com:443",)),
        (("api.github.com:443",), ("a.test:443",)),
    ]
    assert "0123456789" not in str(changes)


@pytest.mark.parametrize(
    ("field", "secret"),
    [
        ("secret.name", {"name": "a b"}),
        ("secret.hosts", {"hosts": []}),
        ("secret.hosts[0]", {"hosts": ["*"]}),
        ("secret.header", {"header": "Host"}),
        ("secret.header", {"header": "X\r\nY"}),
        ("secret.username", {"username": "a:b"}),
        ("value", {"name": "new"}),
    ],
)
async def test_what_cannot_be_a_secret_is_refused(
    served: ServedChats, field: str, secret: dict[str, Any]
) -> None:
    given: dict[str, Any] = {"name": "deploy", "hosts": ["github.com"], **secret}
    request = api.PutSecretRequest(request_id="x", secret=secret_pb2.Secret(**given))

    problem = await served.ann.refusal(request)

    assert (problem.reason, problem.metadata["field"]) == ("INVALID_REQUEST", field)


async def test_secrets_are_their_owners_and_the_installations(
    served: ServedChats, admin: Person
) -> None:
    own = await put(served.ann)
    shared = await put(admin, "mirror", shared=True)
    seen = await served.eve.ask(api.ListSecretsRequest())
    refusals = [
        await served.eve.refusal(request)
        for request in (
            api.PutSecretRequest(request_id="x", secret=secret_pb2.Secret(name="y"), shared=True),
            api.DeleteSecretRequest(request_id="x", secret_id=own.secret_id),
            api.DeleteSecretRequest(request_id="x", secret_id=shared.secret_id),
        )
    ]

    assert [each.name for each in seen.secrets] == ["mirror"]
    assert shared.owner_id == ""
    assert [each.reason for each in refusals] == [
        *("FORBIDDEN", "SECRET_NOT_FOUND", "SECRET_NOT_FOUND"),
    ]
    await admin.ask(api.DeleteSecretRequest(request_id="x", secret_id=shared.secret_id))
    await served.ann.ask(api.DeleteSecretRequest(request_id="x", secret_id=own.secret_id))
    assert not (await served.ann.ask(api.ListSecretsRequest())).secrets


async def test_pages_of_secrets_hold_each_once(served: ServedChats) -> None:
    for name in ("c", "a", "b"):
        await put(served.ann, name)
    first = await served.ann.ask(api.ListSecretsRequest(page_size=2))
    rest = await served.ann.ask(
        api.ListSecretsRequest(page_size=2, page_token=first.next_page_token)
    )

    assert [each.name for each in (*first.secrets, *rest.secrets)] == ["a", "b", "c"]
    assert rest.next_page_token == ""


async def test_a_granted_secret_is_given_to_its_node_and_each_use_is_on_record(
    served: ServedChats, catalogue: Catalogue
) -> None:
    ann = served.ann
    await put(ann, secret={"username": "ada"})
    workspace_id = await ready_workspace(ann, catalogue)
    granted = await grant(ann, workspace_id, "deploy", "deploy")
    listed = await ann.ask(api.ListGrantsRequest(workspace_id=workspace_id))
    used = await catalogue.servicers[1].UseSecret(wish(workspace_id), NO_CONTEXT)
    await catalogue.servicers[1].UseSecret(wish(workspace_id), NO_CONTEXT)
    rows = await served.pool.fetch(
        "SELECT secret_name, host, purpose, outcome FROM chat.secret_uses"
    )
    seen = (await ann.ask(api.ListSecretsRequest())).secrets[0]

    assert [(each.name, [*each.hosts]) for each in granted] == [("deploy", ["github.com:443"])]
    assert [*listed.grants] == [*granted]
    assert (used.username, used.value) == ("ada", VALUE)
    assert [tuple(row) for row in rows] == [
        ("deploy", "github.com:443", "GET /a/b.git/info/refs", "given")
    ]
    assert seen.HasField("last_used_at")
    assert [each.spec.secret_names for each in catalogue.granted] == [("deploy",)]


@pytest.mark.parametrize(
    ("more", "reason", "outcome"),
    [
        ({"host": "evil.test:443"}, "SecretNotGranted", "wrong_host"),
        ({"host": "github.com:80"}, "SecretNotGranted", "wrong_host"),
        ({"host": ""}, "SecretNotGranted", "wrong_host"),
        ({"secret_name": "other"}, "SecretNotGranted", "not_granted"),
        ({"secret_name": "gone"}, "SecretNotGranted", "no_such_secret"),
        ({"epoch": 2}, "SecretNotGranted", "not_placed"),
        ({"workspace_id": NODE_ID}, "SecretNotGranted", "not_placed"),
        ({"registration_epoch": 2}, "StaleNode", None),
        ({"node_id": ANN_ID}, "NodeNotFound", None),
    ],
)
async def test_what_is_not_granted_is_not_given_and_the_wish_is_on_record(
    served: ServedChats,
    catalogue: Catalogue,
    more: dict[str, Any],
    reason: str,
    outcome: str | None,
) -> None:
    ann = served.ann
    await put(ann)
    await put(ann, "other")
    gone = await put(ann, "gone")
    workspace_id = await ready_workspace(ann, catalogue)
    await grant(ann, workspace_id, "deploy", "gone")
    await ann.ask(api.DeleteSecretRequest(request_id="x", secret_id=gone.secret_id))

    with pytest.raises(ChatError) as refused:
        await catalogue.servicers[1].UseSecret(wish(workspace_id, **more), NO_CONTEXT)

    assert type(refused.value).__name__ == reason
    outcomes = [row["outcome"] for row in await served.pool.fetch("SELECT * FROM chat.secret_uses")]
    assert outcomes == ([outcome] if outcome else [])


@pytest.mark.parametrize(
    ("address", "outcome"), [(ADDRESS, "given"), ("unix:/run/another.sock", "not_placed")]
)
async def test_what_was_placed_before_its_node_registered_is_on_it_by_its_address(
    served: ServedChats, catalogue: Catalogue, address: str, outcome: str
) -> None:
    ann = served.ann
    await put(ann)
    made = await ann.ask(
        workspaces_api.CreateWorkspaceRequest(request_id=ann.fresh(), template_id=SCRATCH_ID)
    )
    await catalogue.drive()
    workspace_id = made.workspace.workspace_id
    await grant(ann, workspace_id, "deploy")
    node = node_pb2.Node(node_id=NODE_ID, address=address, name="one")
    await catalogue.servicers[1].RegisterNode(
        nodes_api.RegisterNodeRequest(
            request_id="register", node=node, workspaces=[hosted(workspace_id, READY)]
        ),
        NO_CONTEXT,
    )
    with suppress(SecretNotGranted):
        await catalogue.servicers[1].UseSecret(wish(workspace_id), NO_CONTEXT)

    outcomes = [row["outcome"] for row in await served.pool.fetch("SELECT * FROM chat.secret_uses")]
    assert outcomes == [outcome]


async def test_uses_are_listed_for_the_owner_of_the_workspace_alone(
    served: ServedChats, catalogue: Catalogue
) -> None:
    ann, workspace_id = served.ann, await ready_workspace(served.ann, catalogue)
    await put(ann)
    await grant(ann, workspace_id, "deploy")
    for number in range(3):
        use = wish(workspace_id, request_id=f"use-{number}", purpose=f"GET /{number}")
        await catalogue.servicers[1].UseSecret(use, NO_CONTEXT)
    first = await ann.ask(api.ListSecretUsesRequest(workspace_id=workspace_id, page_size=2))
    token = first.next_page_token
    rest = await ann.ask(api.ListSecretUsesRequest(page_size=2, page_token=token))
    other = await ann.ask(api.ListSecretUsesRequest(workspace_id=NODE_ID))
    bobs = await served.bob.ask(api.ListSecretUsesRequest())

    assert [use.purpose for use in (*first.uses, *rest.uses)] == ["GET /2", "GET /1", "GET /0"]
    shown = first.uses[0]
    assert (shown.workspace_id, shown.node_id, shown.secret_name, shown.host, shown.outcome) == (
        *(workspace_id, NODE_ID, "deploy", "github.com:443"),
        secret_pb2.SECRET_USE_OUTCOME_GIVEN,
    )
    assert shown.HasField("used_at")
    assert (rest.next_page_token, [*other.uses], [*bobs.uses]) == ("", [], [])


async def test_a_grant_that_is_taken_away_is_gone_at_once(
    served: ServedChats, catalogue: Catalogue
) -> None:
    ann = served.ann
    await put(ann)
    workspace_id = await ready_workspace(ann, catalogue)
    await grant(ann, workspace_id, "deploy")
    await grant(ann, workspace_id)

    with pytest.raises(SecretNotGranted, match="not_granted"):
        await catalogue.servicers[1].UseSecret(wish(workspace_id), NO_CONTEXT)


async def test_nobody_grants_for_somebody_elses_workspace_or_what_they_have_not(
    served: ServedChats, catalogue: Catalogue
) -> None:
    await put(served.ann)
    workspace_id = await ready_workspace(served.ann, catalogue)
    for_eve = api.SetGrantsRequest(request_id="x", workspace_id=workspace_id)
    unknown = api.SetGrantsRequest(
        request_id="x", workspace_id=workspace_id, secret_names=["nothing"]
    )

    assert (await served.eve.refusal(for_eve)).reason == "WORKSPACE_NOT_FOUND"
    assert (await served.ann.refusal(unknown)).reason == "SECRET_NOT_FOUND"


async def test_no_user_takes_a_value_as_a_node_does(
    served: ServedChats, catalogue: Catalogue
) -> None:
    await put(served.ann)
    workspace_id = await ready_workspace(served.ann, catalogue)
    await grant(served.ann, workspace_id, "deploy")

    assert (await served.ann.refusal(wish(workspace_id))).reason == "CALLER_NOT_ALLOWED"


async def test_a_deleted_user_leaves_no_secret(served: ServedChats) -> None:
    await put(served.ann)
    await served.pool.execute(
        "INSERT INTO chat.suspended_users (user_id, is_deleted, suspended_at)"
        " VALUES ($1, true, clock_timestamp())",
        ANN_ID,
    )
    await served.pool.execute(DELETE_REST)

    assert await served.pool.fetchval("SELECT count(*) FROM chat.secrets") == 0
