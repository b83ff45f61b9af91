"""Templates over gRPC, and the lifetimes that workspaces get from them."""

from typing import Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from parley.api.workspace.v1 import template_pb2, workspace_pb2
from parley.api.workspace.v1 import workspace_service_pb2 as api
from support.chatd.chats.chat_people import EVES_GROUP, Person
from support.chatd.chats.served_chats import ServedChats
from support.chatd.workspaces.catalogue_calls import create
from support.chatd.workspaces.served_catalogue import Catalogue


def git_template(**more: Any) -> template_pb2.Template:
    return template_pb2.Template(
        name="go-service",
        kind=template_pb2.WORKSPACE_KIND_GIT,
        git=template_pb2.GitSource(url="https://example.org/{repo}.git"),
        parameters=[template_pb2.TemplateParameter(name="repo", required=True)],
        presets=[template_pb2.TemplatePreset(name="usual", parameters={"repo": "one"})],
        enabled_for_agents=True,
        ttl_ms=7_200_000,
        ttl_max_ms=28_800_000,
        **more,
    )


async def test_templates_are_managed_and_seen_by_their_groups(
    served: ServedChats, admin: Person
) -> None:
    request = api.CreateTemplateRequest(
        request_id="t1", template=git_template(group_ids=[EVES_GROUP])
    )
    assert (await served.ann.refusal(request)).status is grpc.StatusCode.PERMISSION_DENIED
    made = (await admin.ask(request)).template
    assert (await admin.ask(request)).template == made
    assert (made.git.url, made.presets[0].name, made.etag) == (
        "https://example.org/{repo}.git",
        "usual",
        "1",
    )
    get = api.GetTemplateRequest(template_id=made.template_id)
    assert (await served.ann.refusal(get)).reason == "TEMPLATE_NOT_FOUND"
    assert (await served.eve.ask(get)).template == made

    update = api.UpdateTemplateRequest(
        request_id="u",
        template=template_pb2.Template(
            template_id=made.template_id, description="For services", bump_ms=60_000, etag="1"
        ),
        update_mask=FieldMask(paths=["description", "bump_ms"]),
    )
    changed = (await admin.ask(update)).template
    expected = template_pb2.Template()
    expected.CopyFrom(made)
    expected.description, expected.bump_ms, expected.etag = "For services", 60_000, "2"
    assert changed == expected
    assert (await admin.refusal(update)).reason == "VERSION_CONFLICT"

    listed = await served.eve.ask(api.ListTemplatesRequest(query="go"))
    assert [each.name for each in listed.templates] == ["go-service"]
    assert listed.recommended_template_id == made.template_id
    assert "create_workspace" in listed.next_step
    workspace = (
        await create(served.eve, template_id=made.template_id, parameters={"repo": "two"})
    ).workspace
    assert dict(workspace.parameters) == {"repo": "two"}
    missing = api.CreateWorkspaceRequest(request_id="m", template_id=made.template_id)
    refused = await served.eve.refusal(missing)
    assert (refused.reason, refused.metadata["field"]) == ("INVALID_REQUEST", "parameters.repo")
    await admin.ask(api.DeleteTemplateRequest(request_id="d", template_id=made.template_id))
    assert (await served.eve.refusal(get)).reason == "TEMPLATE_NOT_FOUND"


@pytest.mark.parametrize(
    ("asked", "installation", "ttl_ms"),
    [({}, 0, 7_200_000), ({}, 60_000, 60_000), ({"ttl_ms": 120_000}, 60_000, 120_000)],
)
async def test_the_lifetime_is_what_was_asked_else_the_installations_else_the_templates(
    served: ServedChats, catalogue: Catalogue, asked: Any, installation: int, ttl_ms: int
) -> None:
    catalogue.ttl.ttl_ms = installation
    assert (await create(served.ann, **asked)).workspace.ttl_ms == ttl_ms


async def test_a_lifetime_is_changed_within_its_bounds(
    served: ServedChats, catalogue: Catalogue
) -> None:
    made = (await create(served.ann)).workspace
    await catalogue.drive()
    named: dict[str, Any] = {"request_id": "r", "workspace_id": made.workspace_id}
    changed = (await served.ann.ask(api.SetWorkspaceTtlRequest(**named, ttl_ms=60_000))).workspace
    assert changed.deadline.ToSeconds() - changed.started_at.ToSeconds() == 60
    refused = await served.ann.refusal(api.SetWorkspaceTtlRequest(**named, ttl_ms=1))
    assert refused.reason == "INVALID_REQUEST"


async def test_a_template_that_fixes_its_lifetime_wins_over_the_installation_and_requests(
    served: ServedChats, catalogue: Catalogue, admin: Person
) -> None:
    catalogue.ttl.ttl_ms = 60_000
    fixed = git_template(is_ttl_fixed=True)
    request = api.CreateTemplateRequest(request_id="fixed", template=fixed)
    template = (await admin.ask(request)).template
    assert template.is_ttl_fixed
    (listed,) = (await served.ann.ask(api.ListTemplatesRequest(query="go"))).templates
    assert listed.is_ttl_fixed
    asked: dict[str, Any] = {"template_id": template.template_id, "parameters": {"repo": "one"}}
    made = (await create(served.ann, **asked)).workspace
    assert (made.ttl_ms, made.is_ttl_fixed) == (7_200_000, True)
    assert made.ttl_source == workspace_pb2.TTL_SOURCE_TEMPLATE
    await catalogue.drive()
    named: dict[str, Any] = {"request_id": "longer", "workspace_id": made.workspace_id}
    longer = await served.ann.refusal(api.SetWorkspaceTtlRequest(**named, ttl_ms=10_800_000))
    assert (longer.reason, longer.metadata["field"]) == ("INVALID_REQUEST", "ttl_ms")
    assert "fixed by its template at 7200000" in longer.message
    other = api.CreateWorkspaceRequest(request_id="other", ttl_ms=60_000, **asked)
    assert (await served.ann.refusal(other)).metadata["field"] == "ttl_ms"
    # It is a setting like others: without it the installation's lifetime holds again.
    update = api.UpdateTemplateRequest(
        request_id="u", template=template, update_mask=FieldMask(paths=["is_ttl_fixed"])
    )
    update.template.is_ttl_fixed = False
    await admin.ask(update)
    free = (await create(served.ann, request_id="free", **asked)).workspace
    assert (free.ttl_ms, free.is_ttl_fixed) == (60_000, False)
    assert free.ttl_source == workspace_pb2.TTL_SOURCE_INSTALLATION
    changed = api.SetWorkspaceTtlRequest(
        request_id="mine", workspace_id=free.workspace_id, ttl_ms=120_000
    )
    own = (await served.ann.ask(changed)).workspace
    assert own.ttl_source == workspace_pb2.TTL_SOURCE_REQUESTED


async def test_a_fork_gets_the_lifetime_that_its_template_has_fixed_since(
    served: ServedChats, catalogue: Catalogue, admin: Person
) -> None:
    request = api.CreateTemplateRequest(request_id="free", template=git_template())
    template = (await admin.ask(request)).template
    asked: dict[str, Any] = {"template_id": template.template_id, "parameters": {"repo": "one"}}
    made = (await create(served.ann, ttl_ms=10_800_000, **asked)).workspace
    await catalogue.drive()
    update = api.UpdateTemplateRequest(
        request_id="u", template=template, update_mask=FieldMask(paths=["is_ttl_fixed"])
    )
    update.template.is_ttl_fixed = True
    await admin.ask(update)
    fork = api.ForkWorkspaceRequest(request_id="f", source_workspace_id=made.workspace_id)
    copy = (await served.ann.ask(fork)).workspace
    assert (made.ttl_ms, made.is_ttl_fixed) == (10_800_000, False)
    assert (copy.ttl_ms, copy.is_ttl_fixed) == (7_200_000, True)
