"""HTTP routes of templates."""

from collections.abc import Callable

from google.protobuf.field_mask_pb2 import FieldMask
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.convert.workspaces import (
    given_fields,
    summary_to_json,
    template_to_json,
    template_to_proto,
)
from gateway.api.inputs.workspaces import NewTemplate, TemplatePatch
from gateway.api.paging import page_request, page_to_json
from gateway.api.path_parameters import template_id_of
from gateway.http.authentication import Principal
from gateway.http.preconditions import conditional, if_match, refuse_condition, tagged
from gateway.http.request_body import (
    flag,
    idempotency_key,
    invalid_parameter,
    read_json,
    read_patch,
    read_query,
)
from gateway.http.responses import json_response
from gateway.streams.chatd_client import ChatdClient
from parley.api.workspace.v1 import workspace_service_pb2 as api

QUERY_CHARACTERS_MAX = 200


class TemplateRoutes:
    """The routes under /templates."""

    def __init__(self, chatd: ChatdClient, *, new_id: Callable[[], str]) -> None:
        self._chatd = chatd
        self._new_id = new_id

    async def list(self, request: Request, principal: Principal) -> Response:
        """List the templates that the caller may use, best first."""
        query = read_query(request, "query", "for_agents", "limit", "cursor")
        page, words = page_request(query), query.get("query", "")
        if len(words) > QUERY_CHARACTERS_MAX:
            raise invalid_parameter("query", f"Give at most {QUERY_CHARACTERS_MAX} characters.")
        asked = api.ListTemplatesRequest(
            page_size=page.page_size,
            page_token=page.page_token,
            query=words,
            for_agents=flag(query, "for_agents"),
        )
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.catalogue.ListTemplates(asked)
        )
        document = page_to_json(map(summary_to_json, answer.templates), answer.next_page_token)
        document["recommended_template_id"] = answer.recommended_template_id or None
        return json_response(document)

    async def create(self, request: Request, principal: Principal) -> Response:
        """Create a template, once for each key."""
        read_query(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_json(request, NewTemplate)
        asked = api.CreateTemplateRequest(request_id=key, template=template_to_proto(body))
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.catalogue.CreateTemplate(asked)
        )
        template = answer.template
        headers = {
            "location": f"/api/v1/templates/{template.template_id}",
            **tagged(template.etag),
        }
        return json_response(template_to_json(template), status=201, headers=headers)

    async def read(self, request: Request, principal: Principal) -> Response:
        """Read one template."""
        read_query(request)
        asked = api.GetTemplateRequest(template_id=template_id_of(request))
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.catalogue.GetTemplate(asked)
        )
        headers = tagged(answer.template.etag)
        return json_response(template_to_json(answer.template), headers=headers)

    async def update(self, request: Request, principal: Principal) -> Response:
        """Change a template."""
        read_query(request)
        template_id, tag = template_id_of(request), if_match(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_patch(request, TemplatePatch)
        template = template_to_proto(body)
        template.template_id, template.etag = template_id, tag
        asked = api.UpdateTemplateRequest(
            request_id=key, template=template, update_mask=FieldMask(paths=given_fields(body))
        )
        with conditional(tag):
            answer = await self._chatd.ask_any(
                principal.user, lambda stubs: stubs.catalogue.UpdateTemplate(asked)
            )
        headers = tagged(answer.template.etag)
        return json_response(template_to_json(answer.template), headers=headers)

    async def delete(self, request: Request, principal: Principal) -> Response:
        """Delete a template."""
        read_query(request)
        refuse_condition(request)
        key = idempotency_key(request) or self._new_id()
        asked = api.DeleteTemplateRequest(request_id=key, template_id=template_id_of(request))
        await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.catalogue.DeleteTemplate(asked)
        )
        return Response(status_code=204)
