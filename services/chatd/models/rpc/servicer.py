"""ModelService: providers, keys, models and overrides, managed by administrators."""

import grpc

from chatd.models.rpc.key_calls import KeyCalls
from chatd.models.rpc.model_calls import ModelCalls
from chatd.models.rpc.ports import ModelPorts
from chatd.models.rpc.provider_calls import ProviderCalls
from parley.api.chat.v1 import model_service_pb2 as api
from parley.api.chat.v1.model_service_pb2_grpc import ModelServiceServicer

Context = grpc.aio.ServicerContext


class ModelServicer(ModelServiceServicer):
    """Serves the catalogue; errors are mapped to statuses by the server's table."""

    def __init__(self, ports: ModelPorts) -> None:
        self._models = ModelCalls(ports)
        self._providers = ProviderCalls(ports)
        self._keys = KeyCalls(ports)

    async def ListModels(  # noqa: N802 (the name is the proto's)
        self, request: api.ListModelsRequest, context: Context
    ) -> api.ListModelsResponse:
        """List the models the caller may use; administrators see all."""
        return await self._models.list(request)

    async def GetModel(  # noqa: N802 (the name is the proto's)
        self, request: api.GetModelRequest, context: Context
    ) -> api.GetModelResponse:
        """Return a model that the caller may use; administrators see all."""
        return await self._models.get(request)

    async def CreateModel(  # noqa: N802 (the name is the proto's)
        self, request: api.CreateModelRequest, context: Context
    ) -> api.CreateModelResponse:
        """Create a model."""
        return await self._models.create(request)

    async def UpdateModel(  # noqa: N802 (the name is the proto's)
        self, request: api.UpdateModelRequest, context: Context
    ) -> api.UpdateModelResponse:
        """Update a model."""
        return await self._models.update(request)

    async def DeleteModel(  # noqa: N802 (the name is the proto's)
        self, request: api.DeleteModelRequest, context: Context
    ) -> api.DeleteModelResponse:
        """Delete a model."""
        return await self._models.delete(request)

    async def ListModelOverrides(  # noqa: N802 (the name is the proto's)
        self, request: api.ListModelOverridesRequest, context: Context
    ) -> api.ListModelOverridesResponse:
        """List the model overrides by purpose."""
        return await self._models.list_overrides(request)

    async def SetModelOverride(  # noqa: N802 (the name is the proto's)
        self, request: api.SetModelOverrideRequest, context: Context
    ) -> api.SetModelOverrideResponse:
        """Set or remove the model override of a purpose."""
        return await self._models.set_override(request)

    async def ListProviders(  # noqa: N802 (the name is the proto's)
        self, request: api.ListProvidersRequest, context: Context
    ) -> api.ListProvidersResponse:
        """List providers."""
        return await self._providers.list(request)

    async def GetProvider(  # noqa: N802 (the name is the proto's)
        self, request: api.GetProviderRequest, context: Context
    ) -> api.GetProviderResponse:
        """Return a provider."""
        return await self._providers.get(request)

    async def CreateProvider(  # noqa: N802 (the name is the proto's)
        self, request: api.CreateProviderRequest, context: Context
    ) -> api.CreateProviderResponse:
        """Create a provider."""
        return await self._providers.create(request)

    async def UpdateProvider(  # noqa: N802 (the name is the proto's)
        self, request: api.UpdateProviderRequest, context: Context
    ) -> api.UpdateProviderResponse:
        """Update a provider."""
        return await self._providers.update(request)

    async def DeleteProvider(  # noqa: N802 (the name is the proto's)
        self, request: api.DeleteProviderRequest, context: Context
    ) -> api.DeleteProviderResponse:
        """Delete a provider, its models and its keys."""
        return await self._providers.delete(request)

    async def CheckProvider(  # noqa: N802 (the name is the proto's)
        self, request: api.CheckProviderRequest, context: Context
    ) -> api.CheckProviderResponse:
        """Check whether the keys of a provider work, and list its models."""
        return await self._providers.check(request)

    async def AddProviderKey(  # noqa: N802 (the name is the proto's)
        self, request: api.AddProviderKeyRequest, context: Context
    ) -> api.AddProviderKeyResponse:
        """Store a key: the installation's by administrators, a user's own by that user."""
        return await self._keys.add(request)

    async def DeleteProviderKey(  # noqa: N802 (the name is the proto's)
        self, request: api.DeleteProviderKeyRequest, context: Context
    ) -> api.DeleteProviderKeyResponse:
        """Delete a key, under the same rule."""
        return await self._keys.delete(request)

    async def ListProviderKeys(  # noqa: N802 (the name is the proto's)
        self, request: api.ListProviderKeysRequest, context: Context
    ) -> api.ListProviderKeysResponse:
        """List the caller's own keys, and the providers that accept such keys."""
        return await self._keys.list(request)
