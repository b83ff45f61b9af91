"""Serves the second factors and passkeys of the caller, and their removal to administrators."""

import grpc

from gateway.identity.domain import PasskeyRecord
from gateway.identity.engine.passkeys import Passkeys
from gateway.identity.engine.second_factors import SecondFactors
from gateway.identity.rpc.service_tokens import calling_user, timestamp
from parley.api.identity.v1 import second_factor_service_pb2 as api
from parley.api.identity.v1.second_factor_service_pb2_grpc import SecondFactorServiceServicer


class SecondFactorServicer(SecondFactorServiceServicer):
    """Serves second factors."""

    def __init__(self, factors: SecondFactors, passkeys: Passkeys) -> None:
        self._factors = factors
        self._passkeys = passkeys

    async def GetSecondFactors(  # noqa: N802 (the name is the proto's)
        self, request: api.GetSecondFactorsRequest, context: grpc.aio.ServicerContext
    ) -> api.GetSecondFactorsResponse:
        """Return the caller's second factors."""
        state = await self._factors.state(calling_user())
        confirmed_at = state.totp_confirmed_at
        return api.GetSecondFactorsResponse(
            totp_confirmed_at=None if confirmed_at is None else timestamp(confirmed_at),
            recovery_codes_left=state.codes_left,
            passkeys=map(_passkey_to_proto, state.passkeys),
        )

    async def StartTotp(  # noqa: N802 (the name is the proto's)
        self, request: api.StartTotpRequest, context: grpc.aio.ServicerContext
    ) -> api.StartTotpResponse:
        """Begin to add an authenticator app."""
        started = await self._factors.start(calling_user())
        return api.StartTotpResponse(secret=started.secret, uri=started.uri)

    async def ConfirmTotp(  # noqa: N802 (the name is the proto's)
        self, request: api.ConfirmTotpRequest, context: grpc.aio.ServicerContext
    ) -> api.ConfirmTotpResponse:
        """Finish adding an authenticator app."""
        codes = await self._factors.confirm(calling_user(), request.code)
        return api.ConfirmTotpResponse(recovery_codes=codes)

    async def ReplaceRecoveryCodes(  # noqa: N802 (the name is the proto's)
        self, request: api.ReplaceRecoveryCodesRequest, context: grpc.aio.ServicerContext
    ) -> api.ReplaceRecoveryCodesResponse:
        """Make new recovery codes."""
        codes = await self._factors.replace_codes(calling_user(), request.code)
        return api.ReplaceRecoveryCodesResponse(recovery_codes=codes)

    async def RemoveTotp(  # noqa: N802 (the name is the proto's)
        self, request: api.RemoveTotpRequest, context: grpc.aio.ServicerContext
    ) -> api.RemoveTotpResponse:
        """Remove the authenticator app."""
        await self._factors.remove(calling_user(), request.code)
        return api.RemoveTotpResponse()

    async def ResetSecondFactors(  # noqa: N802 (the name is the proto's)
        self, request: api.ResetSecondFactorsRequest, context: grpc.aio.ServicerContext
    ) -> api.ResetSecondFactorsResponse:
        """Remove the second factors of a user."""
        await self._factors.reset(calling_user(), request.user_id)
        return api.ResetSecondFactorsResponse()

    async def StartPasskey(  # noqa: N802 (the name is the proto's)
        self, request: api.StartPasskeyRequest, context: grpc.aio.ServicerContext
    ) -> api.StartPasskeyResponse:
        """Begin to add a passkey."""
        started = await self._passkeys.start(calling_user())
        return api.StartPasskeyResponse(
            continuation=started.continuation, options_json=started.options_json
        )

    async def AddPasskey(  # noqa: N802 (the name is the proto's)
        self, request: api.AddPasskeyRequest, context: grpc.aio.ServicerContext
    ) -> api.AddPasskeyResponse:
        """Finish adding a passkey."""
        record = await self._passkeys.add(
            calling_user(),
            continuation=request.continuation,
            name=request.name,
            credential_json=request.credential_json,
        )
        return api.AddPasskeyResponse(passkey=_passkey_to_proto(record))

    async def RemovePasskey(  # noqa: N802 (the name is the proto's)
        self, request: api.RemovePasskeyRequest, context: grpc.aio.ServicerContext
    ) -> api.RemovePasskeyResponse:
        """Remove a passkey."""
        await self._passkeys.remove(calling_user(), request.passkey_id)
        return api.RemovePasskeyResponse()


def _passkey_to_proto(record: PasskeyRecord) -> api.Passkey:
    last_used_at = record.last_used_at
    return api.Passkey(
        passkey_id=record.id,
        name=record.name,
        created_at=timestamp(record.created_at),
        last_used_at=None if last_used_at is None else timestamp(last_used_at),
    )
