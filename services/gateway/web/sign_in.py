"""Pages to sign in, to set a password by a one-time link, and to sign out; forms without scripts.

A form is accepted only from a page of this origin, and only with a token that this page got: that
of the session, or without one that of a cookie which is set with the form.
"""

import hmac
import os
from collections.abc import Mapping
from html import escape
from http import HTTPStatus
from typing import Final, Protocol
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from gateway.http.authentication import Authentication, check_csrf_token
from gateway.http.problems.errors import HttpProblem, http_problem_of
from gateway.http.request_body import read_bytes, read_query
from gateway.http.sign_in_origin import origin_of
from gateway.identity.domain import LinkPurpose, LinkRecord, UserRecord
from gateway.identity.engine.own_sessions import OwnSessions
from gateway.identity.engine.passwords import CHARACTERS_MAX, CHARACTERS_MIN
from gateway.identity.engine.sign_in import SecondFactorNeeded, SignedIn, SignIns
from gateway.identity.errors import IdentityError, SignInNotBegun, SignInRefused
from gateway.identity.secret_tokens import TokenBytes, csrf_token_of, new_token
from gateway.web.documents import document_response

FORM_TYPE: Final = "application/x-www-form-urlencoded"
FORM_BYTES_MAX: Final = 16 * 1024
FORM_FIELDS_MAX: Final = 16
FORM_S_MAX: Final = 30.0
LOGIN_CHARACTERS_MAX: Final = 64
CODE_CHARACTERS_MAX: Final = 32
#: With the policy of other responses, browsers would not say from which page a form comes.
FORM_HEADERS: Final = {"referrer-policy": "same-origin"}


class OtherWays(Protocol):
    """Other ways to sign in."""

    async def links(self) -> str:
        """Return links to them, as HTML."""
        ...

    async def sign_out_link(self, request: Request) -> str:
        """Return the link to sign out of the one that was used, as HTML; empty without one."""
        ...


class SignInPages:
    """The pages of sign-ins.

    Args:
        authentication: Reads sessions and checks origins.
        sign_ins: Makes sessions.
        sessions: Ends sessions.
        other_ways: Other ways to sign in.
        token_bytes: Random bytes of forms.
    """

    def __init__(
        self,
        authentication: Authentication,
        sign_ins: SignIns,
        sessions: OwnSessions,
        other_ways: OtherWays,
        token_bytes: TokenBytes = os.urandom,
    ) -> None:
        self._other_ways = other_ways
        self._authentication = authentication
        self._sign_ins = sign_ins
        self._sessions = sessions
        self._token_bytes = token_bytes

    async def sign_in_form(self, request: Request) -> Response:
        """Show the form to sign in."""
        return await self._sign_in_form(request)

    async def sign_in(self, request: Request) -> Response:
        """Sign in by the form."""
        try:
            form = await self._form(request)
            signed_in = await self._sign_ins.by_password(
                _field(form, "login", LOGIN_CHARACTERS_MAX),
                _field(form, "password", CHARACTERS_MAX),
                origin_of(request, self._authentication.cookies),
            )
        except (HttpProblem, IdentityError) as error:
            return await self._sign_in_form(request, http_problem_of(error))
        return self._entered(request, signed_in)

    async def second_factor(self, request: Request) -> Response:
        """Give the second factor by the form."""
        continuation = ""
        try:
            form = await self._form(request)
            continuation = _field(form, "continuation", CHARACTERS_MAX)
            origin = origin_of(request, self._authentication.cookies)
            code = _field(form, "code", CODE_CHARACTERS_MAX)
            signed_in = await self._sign_ins.by_second_factor(continuation, code, origin)
        except (SignInNotBegun, SignInRefused) as error:
            return await self._sign_in_form(request, http_problem_of(error))
        except (HttpProblem, IdentityError) as error:
            return self._code_form(request, continuation, http_problem_of(error))
        return self._entered(request, signed_in)

    async def link_form(self, request: Request) -> Response:
        """Show the form to set a password; the link is not spent by it."""
        token = read_query(request, "token").get("token", "")
        try:
            link, user = await self._sign_ins.offered_link(token)
        except IdentityError as error:
            return failure(request, error)
        return self._link_form(request, token, link, user)

    async def use_link(self, request: Request) -> Response:
        """Set a password by the form, and sign in."""
        try:
            form = await self._form(request)
            token = _field(form, "token", CHARACTERS_MAX)
            link, user = await self._sign_ins.offered_link(token)
        except (HttpProblem, IdentityError) as error:
            return failure(request, error)
        try:
            password = _field(form, "password", CHARACTERS_MAX)
            if password != _field(form, "repeated", CHARACTERS_MAX):
                raise HttpProblem.of("INVALID_REQUEST", "The two passwords are not the same.")
            origin = origin_of(request, self._authentication.cookies)
            signed_in = await self._sign_ins.by_link(token, password, origin)
        except (HttpProblem, IdentityError) as error:
            return self._link_form(request, token, link, user, http_problem_of(error))
        return self._entered(request, signed_in)

    async def sign_out(self, request: Request) -> Response:
        """Sign out by the form, here or everywhere."""
        principal = await self._authentication.principal(request)
        if principal is not None:
            try:
                self._authentication.check_same_origin(request)
                form = await _read_form(request)
                token = self._authentication.cookies.session_token(request)
                check_csrf_token(form.get("csrf", ""), token)
            except HttpProblem as error:
                return failure(request, error)
            everywhere = form.get("everywhere") == "true"
            await self._sessions.sign_out(
                principal.user, principal.session_id, everywhere=everywhere
            )
        response: Response = RedirectResponse("/login", status_code=HTTPStatus.SEE_OTHER)
        link = await self._other_ways.sign_out_link(request)
        if link:
            response = document_response("Signed out", link)
        self._authentication.cookies.remove_session(response)
        return response

    def sign_out_forms(self, request: Request) -> str:
        """Return the buttons to sign out of the session of a request, as HTML."""
        csrf = csrf_token_of(self._authentication.cookies.session_token(request))
        hidden = f'<input type="hidden" name="csrf" value="{csrf}">'
        everywhere = '<input type="hidden" name="everywhere" value="true">'
        return (
            f'<form method="post" action="/logout">{hidden}<button>Sign out</button></form>'
            f'<form method="post" action="/logout">{hidden}{everywhere}'
            "<button>Sign out everywhere</button></form>"
        )

    def _entered(self, request: Request, signed_in: SignedIn | SecondFactorNeeded) -> Response:
        if isinstance(signed_in, SecondFactorNeeded):
            return self._code_form(request, signed_in.continuation)
        response = RedirectResponse("/", status_code=HTTPStatus.SEE_OTHER)
        self._authentication.cookies.write_session(
            response, signed_in.session_token, signed_in.device_token
        )
        return response

    async def _form(self, request: Request) -> Mapping[str, str]:
        """Return the fields of a form that this browser got from here."""
        self._authentication.check_same_origin(request)
        form = await _read_form(request)
        expected = self._authentication.cookies.form_token(request)
        given = form.get("form_token", "")
        if not expected or not hmac.compare_digest(given.encode(), expected.encode()):
            raise HttpProblem.of(
                "CROSS_SITE_REQUEST", "The form is too old, or cookies are off; send it once more."
            )
        return form

    async def _sign_in_form(self, request: Request, problem: HttpProblem | None = None) -> Response:
        fields = (
            '<p><label>Login<input name="login" autocomplete="username" autocapitalize="none" '
            f'required maxlength="{LOGIN_CHARACTERS_MAX}"></label></p>'
            '<p><label>Password<input name="password" type="password" '
            f'autocomplete="current-password" required maxlength="{CHARACTERS_MAX}"></label></p>'
            "<p><button>Sign in</button></p>"
        )
        hint = "<p>New here, or password forgotten? Ask an administrator for a link.</p>"
        hint += await self._other_ways.links()
        return self._page(request, "Sign in", "/login", fields, hint, problem)

    def _code_form(
        self, request: Request, continuation: str, problem: HttpProblem | None = None
    ) -> Response:
        fields = (
            f'<input type="hidden" name="continuation" value="{escape(continuation)}">'
            '<p><label>Code<input name="code" autocomplete="one-time-code" required '
            f'maxlength="{CODE_CHARACTERS_MAX}"></label></p><p><button>Go on</button></p>'
        )
        hint = "<p>Give the code of your authenticator app, or a recovery code.</p>"
        return self._page(request, "Second factor", "/login/code", fields, hint, problem)

    def _link_form(
        self,
        request: Request,
        token: str,
        link: LinkRecord,
        user: UserRecord,
        problem: HttpProblem | None = None,
    ) -> Response:
        is_new = link.purpose is LinkPurpose.INVITATION
        limits = f'minlength="{CHARACTERS_MIN}" maxlength="{CHARACTERS_MAX}"'
        typed = f'type="password" autocomplete="new-password" required {limits}'
        fields = (
            f'<input type="hidden" name="token" value="{escape(token)}">'
            f'<input type="hidden" name="login" autocomplete="username" '
            f'value="{escape(user.login)}">'
            f"<p><label>New password, {CHARACTERS_MIN} characters or more"
            f'<input name="password" {typed}></label></p>'
            f'<p><label>The same again<input name="repeated" {typed}></label></p>'
            "<p><button>Set password and sign in</button></p>"
        )
        hint = f"<p>Your login is <strong>{escape(user.login)}</strong>.</p>"
        title = f"Welcome, {user.display_name}" if is_new else "Set a new password"
        return self._page(request, title, "/link", fields, hint, problem)

    def _page(
        self,
        request: Request,
        title: str,
        action: str,
        fields: str,
        hint: str,
        problem: HttpProblem | None,
    ) -> Response:
        cookies = self._authentication.cookies
        form_token = cookies.form_token(request) or new_token(self._token_bytes)
        hidden = f'<input type="hidden" name="form_token" value="{escape(form_token)}">'
        said = "" if problem is None else f'<p role="alert">{escape(_words_of(problem))}</p>'
        body = f'{said}{hint}<form method="post" action="{action}">{hidden}{fields}</form>'
        status = HTTPStatus.OK if problem is None else problem.status
        headers = {**FORM_HEADERS, **({} if problem is None else _retry_after(problem))}
        response = document_response(title, body, status=status, headers=headers)
        cookies.write_form(response, form_token)
        return response


def _words_of(problem: HttpProblem) -> str:
    """Return what is wrong for a person, who does not know where the fields of a form end up."""
    return " ".join(each.detail for each in problem.errors) or problem.detail


def takes_html(request: Request) -> bool:
    """Return whether a request accepts HTML, as those of browsers that go to an address do."""
    return "text/html" in request.headers.get("accept", "")


def failure(request: Request, error: Exception) -> Response:
    """Return a page about an error to a browser, and raise it for others.

    Raises:
        Exception: The error, if the request does not accept HTML.
    """
    if not takes_html(request):
        raise error
    problem = http_problem_of(error)
    body = (
        f'<p role="alert">{escape(problem.detail)}</p><p><a href="/login">Sign in</a></p>'
        f'<p><a href="/problems/{problem.code}">About this problem</a></p>'
    )
    headers = {**problem.headers, **_retry_after(problem)}
    return document_response("That did not work", body, status=problem.status, headers=headers)


async def _read_form(request: Request) -> Mapping[str, str]:
    """Return the fields of a form."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != FORM_TYPE:
        raise HttpProblem.of("UNSUPPORTED_MEDIA_TYPE", f"Send a form, as {FORM_TYPE}.")
    too_large = HttpProblem.of(
        "BODY_TOO_LARGE",
        f"The form may have {FORM_BYTES_MAX} bytes.",
        headers={"connection": "close"},
        facts={"limit_bytes": FORM_BYTES_MAX},
    )
    body = await read_bytes(request, too_large, bytes_max=FORM_BYTES_MAX, s_max=FORM_S_MAX)
    try:
        found = parse_qs(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=FORM_FIELDS_MAX
        )
    except ValueError:
        raise HttpProblem.of("INVALID_REQUEST", "The form is not one of this page.") from None
    return {name: values[-1] for name, values in found.items()}


def _field(form: Mapping[str, str], name: str, characters_max: int) -> str:
    value = form.get(name, "")
    if not 1 <= len(value) <= characters_max or "\0" in value:
        raise HttpProblem.of(
            "INVALID_REQUEST", f"Fill in {name}, up to {characters_max} characters."
        )
    return value


def _retry_after(problem: HttpProblem) -> Mapping[str, str]:
    if problem.retry_after_s is None:
        return {}
    return {"retry-after": str(max(1, round(problem.retry_after_s + 0.5)))}
