"""Serves sign-ins to the gateway itself, which puts the tokens of the answers into cookies."""

from typing import Any

import grpc

from gateway.identity.domain import LinkPurpose, SessionRecord, SignInMethod
from gateway.identity.engine.oidc_issuers import OidcIssuers
from gateway.identity.engine.passkeys import Passkeys
from gateway.identity.engine.sign_in import Origin, SecondFactorNeeded, SignedIn, SignIns
from gateway.identity.rpc.service_tokens import timestamp
from parley.api.identity.v1 import session_pb2
from parley.api.identity.v1 import sign_in_service_pb2 as api
from parley.api.identity.v1.sign_in_service_pb2_grpc import SignInServiceServicer

METHODS = {
    method: session_pb2.SignInMethod.Value(f"SIGN_IN_METHOD_{method.name}")
    for method in SignInMethod
}
PURPOSES = {
    purpose: session_pb2.SignInLinkPurpose.Value(f"SIGN_IN_LINK_PURPOSE_{purpose.name}")
    for purpose in LinkPurpose
}


WAYS = ("password", "passkey", "link")


class SignInServicer(SignInServiceServicer):
    """Serves sign-ins."""

    def __init__(
        self, sign_ins: SignIns, passkeys: Passkeys, issuers: OidcIssuers, *, name: str
    ) -> None:
        self._sign_ins = sign_ins
        self._passkeys = passkeys
        self._issuers = issuers
        self._name = name

    async def GetConfiguration(  # noqa: N802 (the name is the proto's)
        self, request: api.GetConfigurationRequest, context: grpc.aio.ServicerContext
    ) -> api.GetConfigurationResponse:
        """Return how people can sign in."""
        return api.GetConfigurationResponse(
            name=self._name,
            methods=WAYS,
            issuers=[
                api.SignInIssuer(
                    name=each.name,
                    display_name=each.display_name,
                    path=f"/login/oidc/{each.name}",
                )
                for each in await self._issuers.all()
            ],
        )

    async def SignIn(  # noqa: N802 (the name is the proto's)
        self, request: api.SignInRequest, context: grpc.aio.ServicerContext
    ) -> api.SignInResponse:
        """Sign in with a password."""
        made = await self._sign_ins.by_password(
            request.login, request.password, _origin_of(request.origin)
        )
        if isinstance(made, SecondFactorNeeded):
            return api.SignInResponse(continuation=made.continuation)
        return api.SignInResponse(**_fields_of(made))

    async def GetOfferedSignInLink(  # noqa: N802 (the name is the proto's)
        self, request: api.GetOfferedSignInLinkRequest, context: grpc.aio.ServicerContext
    ) -> api.GetOfferedSignInLinkResponse:
        """Return what a one-time link is for."""
        link, user = await self._sign_ins.offered_link(request.token)
        return api.GetOfferedSignInLinkResponse(
            purpose=PURPOSES[link.purpose],
            login=user.login,
            display_name=user.display_name,
            expires_at=timestamp(link.expires_at),
        )

    async def UseSignInLink(  # noqa: N802 (the name is the proto's)
        self, request: api.UseSignInLinkRequest, context: grpc.aio.ServicerContext
    ) -> api.UseSignInLinkResponse:
        """Spend a one-time link."""
        made = await self._sign_ins.by_link(
            request.token, request.password, _origin_of(request.origin)
        )
        if isinstance(made, SecondFactorNeeded):
            return api.UseSignInLinkResponse(continuation=made.continuation)
        return api.UseSignInLinkResponse(**_fields_of(made))

    async def GiveSecondFactor(  # noqa: N802 (the name is the proto's)
        self, request: api.GiveSecondFactorRequest, context: grpc.aio.ServicerContext
    ) -> api.GiveSecondFactorResponse:
        """Finish a sign-in."""
        made = await self._sign_ins.by_second_factor(
            request.continuation, request.code, _origin_of(request.origin)
        )
        return api.GiveSecondFactorResponse(**_fields_of(made))

    async def StartPasskeySignIn(  # noqa: N802 (the name is the proto's)
        self, request: api.StartPasskeySignInRequest, context: grpc.aio.ServicerContext
    ) -> api.StartPasskeySignInResponse:
        """Begin a sign-in with a passkey."""
        started = await self._passkeys.start_sign_in()
        return api.StartPasskeySignInResponse(
            continuation=started.continuation, options_json=started.options_json
        )

    async def SignInWithPasskey(  # noqa: N802 (the name is the proto's)
        self, request: api.SignInWithPasskeyRequest, context: grpc.aio.ServicerContext
    ) -> api.SignInWithPasskeyResponse:
        """Sign in with a passkey."""
        made = await self._sign_ins.by_passkey(
            request.continuation, request.credential_json, _origin_of(request.origin)
        )
        return api.SignInWithPasskeyResponse(**_fields_of(made))


def session_to_proto(record: SessionRecord, current_session_id: str) -> session_pb2.Session:
    """Convert a session to its proto."""
    return session_pb2.Session(
        session_id=record.id,
        method=METHODS[record.method],
        address=record.address,
        user_agent=record.user_agent,
        is_current=record.id == current_session_id,
        created_at=timestamp(record.created_at),
        last_seen_at=timestamp(record.last_seen_at),
        expires_at=timestamp(record.expires_at),
    )


def _origin_of(origin: api.SignInOrigin) -> Origin:
    return Origin(origin.address, origin.user_agent, origin.device_token, origin.session_token)


def _fields_of(made: SignedIn) -> dict[str, Any]:
    """Return the fields that all responses with a new session have."""
    return {
        "session": session_to_proto(made.session, made.session.id),
        "csrf_token": made.csrf_token,
        "tokens": api.SessionTokens(
            session_token=made.session_token, device_token=made.device_token
        ),
    }
