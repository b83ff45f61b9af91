"""Methods for models and their overrides."""

from dataclasses import replace

from chatd.models.domain.catalogue import Catalogue, Model
from chatd.models.domain.errors import ModelNotFound
from chatd.models.rpc.administration import body_hash, made_id, note, page_of
from chatd.models.rpc.convert import (
    model_to_proto,
    override_to_proto,
)
from chatd.models.rpc.fields import (
    MODEL_FIELDS,
    masked,
    model_with,
    override_from_proto,
    version_of,
)
from chatd.models.rpc.ports import READERS_OF_ALL, CatalogueMethods, Context
from chatd.primitives.domain.errors import ResourceNotFound
from chatd.primitives.rpc import fields
from chatd.users.rpc.callers import caller_as_owner
from parley.api.chat.v1 import model_pb2
from parley.api.chat.v1 import model_service_pb2 as api


class ModelMethods(CatalogueMethods):
    """Lists models for users; administrators manage them."""

    async def ListModels(
        self, request: api.ListModelsRequest, context: Context
    ) -> api.ListModelsResponse:
        """List the models the caller may use; administrators see all."""
        caller = caller_as_owner()
        is_full = caller.role in READERS_OF_ALL
        catalogue, settings = await self._ports.catalogue(), await self._ports.settings_of(caller)
        listed = [
            model
            for model in catalogue.models.values()
            if _is_shown(model, catalogue, is_full=is_full)
        ]
        listed.sort(key=lambda model: model.id not in settings.favourite_model_ids)
        page, token = page_of(listed, lambda model: model.id, request.page_size, request.page_token)
        return api.ListModelsResponse(
            models=[
                model_to_proto(model, catalogue, self._ports.book, settings, is_full=is_full)
                for model in page
            ],
            next_page_token=token,
        )

    async def GetModel(
        self, request: api.GetModelRequest, context: Context
    ) -> api.GetModelResponse:
        """Return a model that the caller may use; administrators see all."""
        caller = caller_as_owner()
        is_full = caller.role in READERS_OF_ALL
        catalogue, settings = await self._ports.catalogue(), await self._ports.settings_of(caller)
        model = catalogue.models.get(request.model_id)
        if model is None or not _is_shown(model, catalogue, is_full=is_full):
            raise ResourceNotFound("model", request.model_id[:64])
        return api.GetModelResponse(
            model=model_to_proto(model, catalogue, self._ports.book, settings, is_full=is_full)
        )

    async def CreateModel(
        self, request: api.CreateModelRequest, context: Context
    ) -> api.CreateModelResponse:
        """Create a model."""
        caller = caller_as_owner()
        provider_id = fields.uuid_of(request.model.provider_id, "model.provider_id")
        await self._ports.stored_provider_id(provider_id, "provider_id")
        blank = Model(made_id(request, request.request_id, caller), provider_id, "", "")
        model = model_with(blank, request.model, frozenset(MODEL_FIELDS))
        stored = await self._ports.models.create(model, body_hash(request))
        note("a model was made known", caller, model_id=stored.id, model=stored.name)
        return api.CreateModelResponse(model=await self._model(stored))

    async def UpdateModel(
        self, request: api.UpdateModelRequest, context: Context
    ) -> api.UpdateModelResponse:
        """Update a model."""
        changed = masked(tuple(request.update_mask.paths), MODEL_FIELDS)
        model_id = await self._ports.stored_model_id(request.model.id, "model.id")
        stored = await self._ports.models.update(
            model_id,
            lambda model: model_with(model, request.model, changed),
            version_of(request.model.etag, "model.etag"),
        )
        note("a model was changed", caller_as_owner(), model_id=model_id, fields=sorted(changed))
        return api.UpdateModelResponse(model=await self._model(stored))

    async def DeleteModel(
        self, request: api.DeleteModelRequest, context: Context
    ) -> api.DeleteModelResponse:
        """Delete a model."""
        model_id = await self._ports.stored_model_id(request.model_id, "model_id")
        await self._ports.models.delete(model_id)
        note("a model was deleted", caller_as_owner(), model_id=model_id)
        return api.DeleteModelResponse()

    async def ListModelOverrides(
        self, request: api.ListModelOverridesRequest, context: Context
    ) -> api.ListModelOverridesResponse:
        """List the model overrides by purpose."""
        overrides = (await self._ports.catalogue()).overrides
        return api.ListModelOverridesResponse(
            overrides=[override_to_proto(overrides[purpose]) for purpose in sorted(overrides)]
        )

    async def SetModelOverride(
        self, request: api.SetModelOverrideRequest, context: Context
    ) -> api.SetModelOverrideResponse:
        """Set or remove the model override of a purpose."""
        override = override_from_proto(request.override)
        if override.model_id:
            model = (await self._ports.catalogue()).find(override.model_id)
            if model is None:
                raise ModelNotFound(override.model_id)
            override = replace(override, model_id=model.id)
            await self._ports.models.set_override(override)
        else:
            await self._ports.models.clear_override(override.purpose)
        note(
            "the model of a purpose was set",
            caller_as_owner(),
            purpose=override.purpose.value,
            model_id=override.model_id,
        )
        return api.SetModelOverrideResponse(override=override_to_proto(override))

    async def _model(self, stored: Model) -> model_pb2.Model:
        catalogue = await self._ports.catalogue()
        settings = await self._ports.settings_of(caller_as_owner())
        return model_to_proto(stored, catalogue, self._ports.book, settings, is_full=True)


def _is_shown(model: Model, catalogue: Catalogue, *, is_full: bool) -> bool:
    return not model.is_deleted and (is_full or catalogue.is_usable(model))
