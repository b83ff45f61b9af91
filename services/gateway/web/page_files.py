"""The files of the web page, as the build leaves them in `built`: the document and its assets.

All files are read at start, with their compressed variants. Names of assets contain a hash of
their content, so browsers keep them for good; the document is checked at each use.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path, PurePath
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gateway.http.problems.errors import HttpProblem

DOCUMENT: Final = "index.html"
TERMINAL_DOCUMENT: Final = "terminal.html"
SERVICE_WORKER: Final = "service-worker.js"
#: Scripts and styles come from files of this origin, and no text becomes a script: the one policy
#: for trusted types that may be made returns the address of the service worker, and nothing else.
PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "font-src 'self'; connect-src 'self'; frame-src 'self'; manifest-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types service-worker"
)
#: The service worker shows notifications; it requests and loads nothing.
WORKER_POLICY: Final = "default-src 'none'"
#: The terminal writes style elements for its cells. Its document shows nothing else, and only the
#: page may frame it.
TERMINAL_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
FOR_GOOD: Final = "public, max-age=31536000, immutable"
CHECKED: Final = "no-cache"
#: Encodings with the suffixes of their files, the smaller first.
ENCODINGS: Final[Mapping[str, str]] = {"br": ".br", "gzip": ".gz"}
MEDIA_TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page.

    Attributes:
        body: Its bytes.
        media_type: Its media type.
        etag: A hash of its bytes, in quotes.
        encoded: Its compressed bytes by encoding.
    """

    body: bytes
    media_type: str
    etag: str
    encoded: Mapping[str, bytes] = field(default_factory=dict)


class PageFiles:
    """Serves the files of a built page."""

    def __init__(self, found: Mapping[str, PageFile]) -> None:
        self._files = found

    @property
    def is_built(self) -> bool:
        """Whether there is a page to serve."""
        return DOCUMENT in self._files

    def document(self, request: Request, *, status: int = HTTPStatus.OK) -> Response:
        """Return the document of the page, with its policy."""
        headers = {"content-security-policy": PAGE_POLICY, "cache-control": CHECKED}
        return _response(request, self._files[DOCUMENT], headers, status=status)

    def terminal(self, request: Request) -> Response:
        """Return the document of a terminal, which the page frames.

        Raises:
            HttpProblem: The page is not built (404).
        """
        if TERMINAL_DOCUMENT not in self._files:
            raise HttpProblem.of("NO_SUCH_PATH", "The web page is not built here.")
        headers = {
            "content-security-policy": TERMINAL_POLICY,
            "cache-control": CHECKED,
        }
        return _response(request, self._files[TERMINAL_DOCUMENT], headers)

    def service_worker(self, request: Request) -> Response:
        """Return the script that shows notifications while no page is open.

        Raises:
            HttpProblem: The page is not built (404).
        """
        if SERVICE_WORKER not in self._files:
            raise HttpProblem.of("NO_SUCH_PATH", "The web page is not built here.")
        headers = {"content-security-policy": WORKER_POLICY, "cache-control": CHECKED}
        return _response(request, self._files[SERVICE_WORKER], headers)

    async def asset(self, request: Request) -> Response:
        """Return an asset by its name.

        Raises:
            HttpProblem: There is no such asset (404).
        """
        name = request.path_params["name"]
        if name in (DOCUMENT, TERMINAL_DOCUMENT, SERVICE_WORKER) or name not in self._files:
            raise HttpProblem.of("NO_SUCH_PATH", "This version of the page has no such file.")
        return _response(request, self._files[name], {"cache-control": FOR_GOOD})


def load_page_files(directory: Path | None = None) -> PageFiles:
    """Read a built page; without one, nothing is served."""
    root = directory or Path(str(files("gateway.web") / "built"))
    places = (root, root / "assets")
    found = {
        path.name: _read(path)
        for place in places
        if place.is_dir()
        for path in sorted(place.iterdir())
        if path.suffix in MEDIA_TYPES
    }
    return PageFiles(found)


def _read(path: Path) -> PageFile:
    body = path.read_bytes()
    variants = {name: Path(f"{path}{suffix}") for name, suffix in ENCODINGS.items()}
    return PageFile(
        body=body,
        media_type=MEDIA_TYPES[PurePath(path).suffix],
        etag=f'"{sha256(body).hexdigest()[:32]}"',
        encoded={name: each.read_bytes() for name, each in variants.items() if each.is_file()},
    )


def _response(
    request: Request,
    file: PageFile,
    headers: Mapping[str, str],
    *,
    status: int = HTTPStatus.OK,
) -> Response:
    shared = {**headers, "etag": file.etag, "vary": "accept-encoding"}
    known = request.headers.get("if-none-match", "")
    if file.etag in [each.strip().removeprefix("W/") for each in known.split(",")]:
        return Response(status_code=304, headers=shared)
    accepted = {
        each.partition(";")[0].strip()
        for each in request.headers.get("accept-encoding", "").split(",")
        if each.replace(" ", "").partition(";")[2] not in ("q=0", "q=0.0")
    }
    encoding = next((name for name in file.encoded if name in accepted), None)
    if encoding is None:
        return Response(file.body, status, headers=shared, media_type=file.media_type)
    encoded = {**shared, "content-encoding": encoding}
    return Response(file.encoded[encoding], status, headers=encoded, media_type=file.media_type)
