"""HTTP routes that sign in and out: calls whose tokens are put into cookies."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from gateway.api.contract import bindings
from gateway.api.json_input import Body
from gateway.api.json_output import to_json
from gateway.api.transcoded_route import Call, body_type_of
from gateway.http.authentication import Authentication, Principal
from gateway.http.request_body import (
    idempotency_key,
    read_json,
    read_optional_json,
    read_query,
)
from gateway.http.responses import json_response
from gateway.http.sign_in_origin import origin_of
from gateway.routes.identity_calls import IdentityCalls
from parley.api.identity.v1 import session_service_pb2, sign_in_service_pb2

CONFIGURATION: Final = "/parley.api.identity.v1.SignInService/GetConfiguration"
SIGN_IN: Final = "/parley.api.identity.v1.SignInService/SignIn"
OFFERED_LINK: Final = "/parley.api.identity.v1.SignInService/GetOfferedSignInLink"
USE_LINK: Final = "/parley.api.identity.v1.SignInService/UseSignInLink"
SECOND_FACTOR: Final = "/parley.api.identity.v1.SignInService/GiveSecondFactor"
START_PASSKEY: Final = "/parley.api.identity.v1.SignInService/StartPasskeySignIn"
USE_PASSKEY: Final = "/parley.api.identity.v1.SignInService/SignInWithPasskey"
SIGN_OUT: Final = "/parley.api.identity.v1.SessionService/SignOut"


def body_of_method(method: str) -> Body:
    """Return the JSON body of a method that has one binding."""
    (binding,) = (each for each in bindings() if each.call_path == method)
    body = body_type_of(binding)
    assert body is not None
    return body


class SignInRoutes:
    """The routes below /sign-in, and /sign-out."""

    def __init__(self, calls: IdentityCalls, authentication: Authentication) -> None:
        self._calls = calls
        self._authentication = authentication

    async def configuration(self, request: Request) -> Response:
        """Return how to sign in."""
        read_query(request)
        message = sign_in_service_pb2.GetConfigurationRequest()
        return json_response(to_json(await self._calls.for_nobody(CONFIGURATION, message)))

    async def sign_in(self, request: Request) -> Response:
        """Sign in with a password."""
        message = sign_in_service_pb2.SignInRequest()
        await self._read(request, SIGN_IN, message)
        self._set_origin(request, message.origin)
        return self._signed_in(await self._calls.for_nobody(SIGN_IN, message))

    async def offered_link(self, request: Request) -> Response:
        """Return what a one-time link is for."""
        message = sign_in_service_pb2.GetOfferedSignInLinkRequest()
        await self._read(request, OFFERED_LINK, message)
        return json_response(to_json(await self._calls.for_nobody(OFFERED_LINK, message)))

    async def use_link(self, request: Request) -> Response:
        """Set a password by a one-time link, and sign in."""
        message = sign_in_service_pb2.UseSignInLinkRequest()
        await self._read(request, USE_LINK, message)
        self._set_origin(request, message.origin)
        return self._signed_in(await self._calls.for_nobody(USE_LINK, message))

    async def second_factor(self, request: Request) -> Response:
        """Finish a sign-in with a second factor."""
        message = sign_in_service_pb2.GiveSecondFactorRequest()
        await self._read(request, SECOND_FACTOR, message)
        self._set_origin(request, message.origin)
        return self._signed_in(await self._calls.for_nobody(SECOND_FACTOR, message))

    async def start_passkey(self, request: Request) -> Response:
        """Begin a sign-in with a passkey."""
        self._authentication.check_program_or_own_page(request)
        message = sign_in_service_pb2.StartPasskeySignInRequest()
        return json_response(to_json(await self._calls.for_nobody(START_PASSKEY, message)))

    async def use_passkey(self, request: Request) -> Response:
        """Sign in with a passkey."""
        message = sign_in_service_pb2.SignInWithPasskeyRequest()
        await self._read(request, USE_PASSKEY, message)
        self._set_origin(request, message.origin)
        return self._signed_in(await self._calls.for_nobody(USE_PASSKEY, message))

    async def sign_out(self, request: Request, principal: Principal) -> Response:
        """Sign out here or everywhere."""
        read_query(request)
        message = session_service_pb2.SignOutRequest(
            request_id=idempotency_key(request) or "", current_session_id=principal.session_id
        )
        body = body_of_method(SIGN_OUT)
        body.fill(message, await read_optional_json(request, body.type))
        user = principal.user
        response = json_response(
            to_json(await self._calls(Call(SIGN_OUT, message, user, user.id, None)))
        )
        self._authentication.cookies.remove_session(response)
        return response

    async def _read(self, request: Request, method: str, message: Any) -> None:
        self._authentication.check_program_or_own_page(request)
        read_query(request)
        body = body_of_method(method)
        body.fill(message, await read_json(request, body.type))

    def _set_origin(self, request: Request, message: sign_in_service_pb2.SignInOrigin) -> None:
        origin = origin_of(request, self._authentication.cookies)
        message.address = origin.address
        message.user_agent = origin.user_agent
        message.device_token = origin.device_token
        message.session_token = origin.session_token

    def _signed_in(self, made: Any) -> Response:
        response = json_response(to_json(made))
        tokens = made.tokens
        if tokens.session_token:
            self._authentication.cookies.write_session(
                response, tokens.session_token, tokens.device_token
            )
        return response
