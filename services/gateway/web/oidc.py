"""Pages of sign-ins with identity providers: leaving for one, and coming back."""

import logging
from html import escape
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from gateway.http.authentication import Authentication
from gateway.http.request_body import read_query
from gateway.http.sign_in_origin import origin_of
from gateway.identity.engine.oidc_sign_in import OidcSignIns
from gateway.identity.errors import IdentityError, IssuerRefused, IssuerUnavailable
from gateway.web.sign_in import failure

#: Parameters with which issuers send browsers back; further ones are ignored.
ANSWER: Final = ("code", "state", "iss", "error")

_log = logging.getLogger(__name__)


class OidcPages:
    """The pages of identity providers."""

    def __init__(self, authentication: Authentication, sign_ins: OidcSignIns) -> None:
        self._authentication = authentication
        self._sign_ins = sign_ins

    async def links(self) -> str:
        """Return the links to all issuers, as HTML."""
        return "".join(
            f'<p><a href="/login/oidc/{each.name}">Sign in with {escape(each.display_name)}</a></p>'
            for each in await self._sign_ins.issuers.all()
        )

    async def start(self, request: Request) -> Response:
        """Send the browser to an issuer, to sign in or to link an identity to its user."""
        continuation = read_query(request, "continuation").get("continuation", "")
        name = request.path_params["issuer"]
        try:
            if continuation:
                user_id = await self._present_user_id(request)
                started = await self._sign_ins.start_link(name, continuation, user_id or "")
            else:
                started = await self._sign_ins.start(name)
        except IdentityError as error:
            return _failed(request, error)
        response = RedirectResponse(started.url, status_code=HTTPStatus.SEE_OTHER)
        self._authentication.cookies.write_state(response, started.state)
        return response

    async def finish(self, request: Request) -> Response:
        """Sign the user in with whom the issuer sent the browser back."""
        cookies = self._authentication.cookies
        query = request.query_params
        answer = {name: query[name] for name in ANSWER if name in query}
        try:
            signed_in = await self._sign_ins.finish(
                request.path_params["issuer"],
                answer,
                expected_state=cookies.state_token(request),
                origin=origin_of(request, cookies),
                present_user_id=await self._present_user_id(request),
            )
        except IdentityError as error:
            return _failed(request, error)
        if signed_in is None:
            response = RedirectResponse("/settings/account", status_code=HTTPStatus.SEE_OTHER)
            cookies.remove_state(response)
            return response
        response = RedirectResponse("/", status_code=HTTPStatus.SEE_OTHER)
        cookies.write_session(response, signed_in.session_token, signed_in.device_token)
        cookies.finish_state(response, request.path_params["issuer"])
        return response

    async def _present_user_id(self, request: Request) -> str | None:
        principal = await self._authentication.principal(request)
        return None if principal is None else principal.user.id

    async def sign_out_link(self, request: Request) -> str:
        """Return the link to sign out of the issuer that was used, as HTML; empty without one."""
        name = self._authentication.cookies.issuer(request)
        if not name:
            return ""
        try:
            issuer = await self._sign_ins.issuers.find(name)
            return_to = f"{self._sign_ins.public_url}/login"
            url = await self._sign_ins.issuers.sign_out_url(issuer, return_to)
        except IdentityError:
            # The session here has ended in any case.
            return ""
        if url is None:
            return ""
        text = f"Sign out of {escape(issuer.display_name)} too"
        return f'<p><a href="{escape(url)}">{text}</a></p><p><a href="/login">Sign in</a></p>'


def _failed(request: Request, error: IdentityError) -> Response:
    if isinstance(error, IssuerRefused | IssuerUnavailable):
        _log.warning("identity provider %r: %s", request.path_params["issuer"], error.cause)
    return failure(request, error)
