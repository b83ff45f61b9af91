"""Routes without sign-in: the page, the list of routes, the login link, and health."""

import asyncio
import hmac
from collections.abc import Mapping
from datetime import timedelta
from html import escape
from http import HTTPStatus
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from gateway.api.contract import access_table
from gateway.http.application import client_of
from gateway.http.authentication import Authentication
from gateway.http.problems.errors import HttpProblem
from gateway.http.request_body import read_query
from gateway.http.responses import json_response
from gateway.http.route_access import Need
from gateway.http.sign_in_origin import origin_of
from gateway.identity.engine.sign_in import SignIns
from gateway.identity.secret_tokens import digest_of
from gateway.identity.store.credentials import IdentityStore
from gateway.streams.chatd_client import ChatdClient
from gateway.web.documents import document_response
from gateway.web.page_files import PageFiles
from gateway.web.problem_pages import index_body, problem_body
from gateway.web.sign_in import FORM_HEADERS, SignInPages, failure, takes_html
from parley.clock import Clock
from parley.contract.errors import ERROR_SPECS
from parley.postgres import DatabaseUnavailable
from parley.settings import Secret

CHECK_S_MAX = 2.0
# The link stays in a terminal's history, so it expires.
LOGIN_LINK_LIFETIME = timedelta(days=1)
NOT_BUILT = (
    "<p>The web page is not built here. In a checkout <code>scripts/page</code> builds it, which "
    "needs the npm registry; then start Parley again. The API works without it.</p>"
    '<p><a href="/account">Who is signed in</a></p><p><a href="/docs">What the API offers</a></p>'
)


class PageRoutes:
    """The routes outside the API."""

    def __init__(
        self,
        authentication: Authentication,
        people: IdentityStore,
        sign_ins: SignIns,
        sign_in_pages: SignInPages,
        chatd: ChatdClient,
        page_files: PageFiles,
        *,
        login_token: Secret | None,
        clock: Clock,
        draining: asyncio.Event,
    ) -> None:
        self._authentication = authentication
        self._identity_store = people
        self._sign_ins = sign_ins
        self._sign_in_pages = sign_in_pages
        self._chatd = chatd
        self._page_files = page_files
        self._login_token = login_token
        self._clock = clock
        self._started_at = clock.now()
        self._draining = draining
        self._openapi = (files("gateway.api") / "openapi.json").read_bytes()

    async def page(self, request: Request) -> Response:
        """Return the page, which shows what its address names."""
        if self._page_files.is_built:
            return self._page_files.document(request)
        return document_response("Parley", NOT_BUILT)

    def absent(self, request: Request) -> Response | None:
        """Return the page for an address without a screen if a browser goes there, else None.

        The page says so and leads on; programs get a problem.
        """
        is_visit = request.method in ("GET", "HEAD") and takes_html(request)
        is_of_api = request.scope["path"].startswith("/api/")
        if not is_visit or is_of_api or not self._page_files.is_built:
            return None
        return self._page_files.document(request, status=HTTPStatus.NOT_FOUND)

    async def terminal(self, request: Request) -> Response:
        """Return the document of a terminal."""
        return self._page_files.terminal(request)

    async def service_worker(self, request: Request) -> Response:
        """Return the script that shows notifications."""
        return self._page_files.service_worker(request)

    async def asset(self, request: Request) -> Response:
        """Return a file of the page."""
        return await self._page_files.asset(request)

    async def account(self, request: Request) -> Response:
        """Show who is signed in, with buttons to sign out; without scripts."""
        principal = await self._authentication.principal(request)
        headers = None
        if principal is None:
            who = (
                '<p>Nobody is signed in. <a href="/login">Sign in</a>, or open the login link that '
                "<code>parley up</code> printed.</p>"
            )
        else:
            record = principal.record
            who = f"<p>Signed in as {escape(record.display_name)} ({escape(record.role)}).</p>"
            who += self._sign_in_pages.sign_out_forms(request)
            headers = FORM_HEADERS
        body = f'{who}<p><a href="/docs">What the API offers</a></p>'
        return document_response("Your account", body, headers=headers)

    async def docs(self, request: Request) -> Response:
        """List the routes and the allowed roles."""
        rows = "".join(
            f"<tr><td><code>{method} {escape(path)}</code></td><td>{escape(access.doc)}</td><td>"
            + ("everyone" if access.need is Need.NOTHING else ", ".join(sorted(access.roles)))
            + f"</td><td>{escape(access.scope or '')}</td></tr>"
            for (method, path), access in access_table().items()
        )
        head = "<tr><th>Route</th><th>What it does</th><th>Who may</th><th>Scope</th></tr>"
        return document_response(
            "The API",
            "<p>Send <code>Authorization: Bearer</code> with an API key. "
            '<a href="/openapi.json">openapi.json</a> describes all of it. Errors are '
            'problem documents (RFC 9457, see <a href="/problems">all</a>), streams are '
            f"server-sent events.</p><table>{head}{rows}</table>",
            is_wide=True,
        )

    async def openapi(self, request: Request) -> Response:
        """Return the OpenAPI document, which `scripts/openapi.py` generates from the protos."""
        return Response(self._openapi, media_type="application/json")

    async def problems(self, request: Request) -> Response:
        """List the problem codes."""
        return document_response("Problems", index_body(), is_wide=True)

    async def problem(self, request: Request) -> Response:
        """Show the meaning and the remedy of one problem code."""
        code = request.path_params["code"]
        if code not in ERROR_SPECS:
            raise HttpProblem.of("NO_SUCH_PATH", "There is no such problem; see /problems.")
        return document_response(code, problem_body(ERROR_SPECS[code]), is_wide=True)

    async def login(self, request: Request) -> Response:
        """Show the form to sign in, or consume the login link for a session."""
        query = read_query(request, "token")
        if "token" not in query:
            return await self._sign_in_pages.sign_in_form(request)
        token = query["token"]
        expected = "" if self._login_token is None else self._login_token.reveal()
        is_ours = hmac.compare_digest(digest_of(token), digest_of(expected)) and bool(expected)
        is_fresh = self._clock.now() - self._started_at < LOGIN_LINK_LIFETIME
        signed_in = None
        cookies = self._authentication.cookies
        if is_ours and is_fresh:
            origin = origin_of(request, cookies)
            signed_in = await self._sign_ins.owner_by_login_link(digest_of(token), origin)
        if signed_in is None:
            problem = HttpProblem.of(
                "LOGIN_LINK_INVALID",
                "The link was used before, is older than a day or another start's; use the newest "
                "one that `parley up` printed, or start Parley again for a new one.",
            )
            return failure(request, problem)
        response = RedirectResponse("/", status_code=303)
        cookies.write_session(response, signed_in.session_token, signed_in.device_token)
        return response

    async def healthz(self, request: Request) -> Response:
        """Return that this process responds."""
        return json_response({"status": "ok"})

    async def connection(self, request: Request) -> Response:
        """Return how this request reached the process: as whose, to which host, and over what."""
        client = client_of(request)
        return json_response(
            {
                "address": client.address,
                "host": client.host,
                "scheme": client.scheme or None,
                "ignored_headers": list(client.ignored),
                "http_version": request.scope["http_version"],
                "time": self._clock.now().isoformat(),
            }
        )

    async def readyz(self, request: Request) -> Response:
        """Return whether this process is ready."""
        if self._draining.is_set():
            raise _not_ready({"process": "draining"})
        async with asyncio.TaskGroup() as tasks:
            database = tasks.create_task(self._is_database_there())
            chatd = tasks.create_task(self._chatd.is_healthy(CHECK_S_MAX))
        checks = {"database": _word(database.result()), "chatd": _word(chatd.result())}
        if not (database.result() and chatd.result()):
            raise _not_ready(checks)
        return json_response({"status": "ready", "checks": checks})

    async def _is_database_there(self) -> bool:
        try:
            async with asyncio.timeout(CHECK_S_MAX):
                await self._identity_store.ping()
        except (DatabaseUnavailable, TimeoutError):
            return False
        return True


def _word(is_well: bool) -> str:
    return "ok" if is_well else "unavailable"


def _not_ready(checks: Mapping[str, str]) -> HttpProblem:
    at_fault = ", ".join(f"{name} is {word}" for name, word in checks.items() if word != "ok")
    return HttpProblem.of("NOT_READY", f"Not ready: {at_fault}.", facts={"checks": dict(checks)})
