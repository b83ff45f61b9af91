"""HTTP routes of models: the catalogue, its administration, and overrides for purposes."""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from gateway.api.convert.models import (
    PURPOSES,
    model_patch_to_proto,
    model_to_json,
    new_model_to_proto,
    override_to_json,
    override_to_proto,
)
from gateway.api.inputs.models import ModelPatch, NewModel, NewOverride
from gateway.api.paging import LIMIT_MAX, page_request, page_to_json
from gateway.api.path_parameters import name_of, resource_not_found
from gateway.http.authentication import Principal
from gateway.http.preconditions import (
    conditional,
    if_match,
    refuse_condition,
    tagged,
    tagged_response,
)
from gateway.http.request_body import idempotency_key, read_json, read_patch, read_query
from gateway.http.responses import json_response
from gateway.streams.chatd_client import ChatdClient
from parley.api.chat.v1 import model_pb2
from parley.api.chat.v1 import model_service_pb2 as api


class ModelRoutes:
    """The routes /models and /model-overrides."""

    def __init__(self, chatd: ChatdClient, *, new_id: Callable[[], str]) -> None:
        self._chatd = chatd
        self._new_id = new_id

    async def list(self, request: Request, principal: Principal) -> Response:
        """List the models the caller may use; administrators see all."""
        page = page_request(read_query(request, "limit", "cursor"))
        asked = api.ListModelsRequest(page_size=page.page_size, page_token=page.page_token)
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.models.ListModels(asked)
        )
        items = map(model_to_json, answer.models)
        return json_response(page_to_json(items, answer.next_page_token))

    async def read(self, request: Request, principal: Principal) -> Response:
        """Read one model."""
        read_query(request)
        model = await self._found(principal, name_of(request, "model_id", "model"))
        return tagged_response(request, model_to_json(model), model.etag)

    async def create(self, request: Request, principal: Principal) -> Response:
        """Create a model."""
        read_query(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_json(request, NewModel)
        asked = api.CreateModelRequest(request_id=key, model=new_model_to_proto(body))
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.models.CreateModel(asked)
        )
        headers = {"location": f"/api/v1/models/{answer.model.id}", **tagged(answer.model.etag)}
        return json_response(model_to_json(answer.model), status=201, headers=headers)

    async def update(self, request: Request, principal: Principal) -> Response:
        """Change a model."""
        read_query(request)
        model_id, tag = name_of(request, "model_id", "model"), if_match(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_patch(request, ModelPatch)
        asked = model_patch_to_proto(body, request_id=key, model_id=model_id, etag=tag)
        with conditional(tag):
            answer = await self._chatd.ask_any(
                principal.user, lambda stubs: stubs.models.UpdateModel(asked)
            )
        return json_response(model_to_json(answer.model), headers=tagged(answer.model.etag))

    async def delete(self, request: Request, principal: Principal) -> Response:
        """Delete a model."""
        read_query(request)
        refuse_condition(request)
        model_id = name_of(request, "model_id", "model")
        key = idempotency_key(request) or self._new_id()
        asked = api.DeleteModelRequest(request_id=key, model_id=model_id)
        await self._chatd.ask_any(principal.user, lambda stubs: stubs.models.DeleteModel(asked))
        return Response(status_code=204)

    async def list_overrides(self, request: Request, principal: Principal) -> Response:
        """List the model overrides of purposes."""
        read_query(request)
        asked = api.ListModelOverridesRequest()
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.models.ListModelOverrides(asked)
        )
        return json_response({"items": [override_to_json(each) for each in answer.overrides]})

    async def put_override(self, request: Request, principal: Principal) -> Response:
        """Set the model override of a purpose."""
        read_query(request)
        refuse_condition(request)
        purpose = _purpose(request)
        body = await read_json(request, NewOverride)
        return json_response(await self._set_override(request, principal, purpose, body))

    async def delete_override(self, request: Request, principal: Principal) -> Response:
        """Remove the model override of a purpose."""
        read_query(request)
        refuse_condition(request)
        await self._set_override(request, principal, _purpose(request), None)
        return Response(status_code=204)

    async def _set_override(
        self, request: Request, principal: Principal, purpose: int, body: NewOverride | None
    ) -> object:
        key = idempotency_key(request) or self._new_id()
        override = override_to_proto(purpose, body)
        asked = api.SetModelOverrideRequest(request_id=key, override=override)
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.models.SetModelOverride(asked)
        )
        return override_to_json(answer.override)

    async def _found(self, principal: Principal, model_id: str) -> model_pb2.Model:
        """Return one model from the list, which has a few dozen entries at most."""
        asked = api.ListModelsRequest(page_size=LIMIT_MAX)
        while True:
            answer = await self._chatd.ask_any(
                principal.user, lambda stubs: stubs.models.ListModels(asked)
            )
            for model in answer.models:
                if model.id == model_id:
                    return model
            if not answer.next_page_token:
                raise resource_not_found("model")
            asked.page_token = answer.next_page_token


def _purpose(request: Request) -> int:
    purpose = PURPOSES.get(request.path_params["purpose"])
    if purpose is None:
        raise resource_not_found("purpose")
    return purpose
