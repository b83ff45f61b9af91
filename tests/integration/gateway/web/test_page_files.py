"""The built page: its document for every address of it, its assets for good, its policy."""

import gzip
import json
import re
from importlib.resources import files
from pathlib import Path

import pytest
from starlette.requests import Request

from gateway.http.application import SECURITY_HEADERS
from gateway.http.problems.errors import HttpProblem
from gateway.routes.table import PAGE_PATHS
from gateway.web.page_files import FOR_GOOD, PAGE_POLICY, load_page_files
from support.gateway.stack import GatewayStack

INITIAL_BYTES_MAX = 250 * 1024
SCRIPT = b"export const answer = 42;\n" * 40


@pytest.fixture
def built(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>Parley</title>")
    (tmp_path / "terminal.html").write_text("<!doctype html><title>Terminal</title>")
    (tmp_path / "service-worker.js").write_bytes(SCRIPT)
    (tmp_path / "assets" / "main-1a2b.js").write_bytes(SCRIPT)
    (tmp_path / "assets" / "main-1a2b.js.gz").write_bytes(gzip.compress(SCRIPT, mtime=0))
    (tmp_path / "assets" / "main-1a2b.js.br").write_bytes(b"as brotli")
    return tmp_path


def asked(name: str = "", **headers: str) -> Request:
    raw = [(each.replace("_", "-").encode(), value.encode()) for each, value in headers.items()]
    return Request({"type": "http", "method": "GET", "headers": raw, "path_params": {"name": name}})


def directives(policy: str) -> dict[str, str]:
    return {
        name: values for name, _, values in (each.partition(" ") for each in policy.split("; "))
    }


@pytest.mark.parametrize(
    ("accepted", "encoding", "body"),
    [
        ("gzip, deflate, br, zstd", "br", b"as brotli"),
        ("gzip, br;q=0", "gzip", gzip.compress(SCRIPT, mtime=0)),
        ("identity", None, SCRIPT),
    ],
)
async def test_an_asset_is_kept_for_good_and_comes_as_small_as_the_browser_takes_it(
    built: Path, accepted: str, encoding: str | None, body: bytes
) -> None:
    reply = await load_page_files(built).asset(asked("main-1a2b.js", accept_encoding=accepted))

    assert reply.headers["cache-control"] == FOR_GOOD
    assert reply.headers["content-type"] == "text/javascript; charset=utf-8"
    assert reply.headers["vary"] == "accept-encoding"
    assert reply.headers.get("content-encoding") == encoding
    assert len(bytes(reply.body)) == len(body)


async def test_the_document_is_checked_at_each_use_and_has_a_strict_policy(built: Path) -> None:
    files = load_page_files(built)
    reply = files.document(asked())
    again = files.document(asked(if_none_match=reply.headers["etag"]))

    assert (reply.status_code, again.status_code, bytes(again.body)) == (200, 304, b"")
    assert reply.headers["cache-control"] == "no-cache"
    assert directives(reply.headers["content-security-policy"]) == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' blob:",
        "font-src": "'self'",
        "connect-src": "'self'",
        "frame-src": "'self'",
        "manifest-src": "'self'",
        "worker-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "service-worker",
    }


async def test_the_service_worker_keeps_its_address_and_may_load_nothing(built: Path) -> None:
    reply = load_page_files(built).service_worker(asked())

    assert reply.headers["cache-control"] == "no-cache"
    assert reply.headers["content-type"] == "text/javascript; charset=utf-8"
    assert directives(reply.headers["content-security-policy"]) == {"default-src": "'none'"}
    assert bytes(reply.body) == SCRIPT


async def test_the_document_of_a_terminal_may_style_itself_and_is_framed_by_the_page_alone(
    built: Path,
) -> None:
    reply = load_page_files(built).terminal(asked())

    assert directives(reply.headers["content-security-policy"]) == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self' 'unsafe-inline'",
        "font-src": "'self'",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'self'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }


@pytest.mark.parametrize(
    "name",
    [
        "index.html",
        "terminal.html",
        "service-worker.js",
        "main-0000.js",
        "main-1a2b.js.gz",
        ".stamp",
    ],
)
async def test_only_files_of_the_page_are_served(built: Path, name: str) -> None:
    with pytest.raises(HttpProblem) as refused:
        await load_page_files(built).asset(asked(name))

    assert refused.value.status == 404


async def test_without_a_built_page_there_is_nothing_to_serve(tmp_path: Path) -> None:
    assert not load_page_files(tmp_path / "absent").is_built


async def test_every_address_of_the_page_is_answered_with_it(stack: GatewayStack) -> None:
    replies = {
        path: await stack.anonymous.request("GET", path.replace("{", "").replace("}", ""))
        for path in PAGE_PATHS
    }

    assert {reply.status for reply in replies.values()} == {200}
    assert len({reply.body for reply in replies.values()}) == 1
    for reply in replies.values():
        if reply.headers["content-security-policy"] == PAGE_POLICY:
            assert b"<script>" not in reply.body
            assert b"style=" not in reply.body
        else:
            assert b"scripts/page" in reply.body
        kept = {"content-security-policy", "cache-control"}
        assert {name: reply.headers[name] for name in SECURITY_HEADERS if name not in kept} == {
            name: each for name, each in SECURITY_HEADERS.items() if name not in kept
        }


def test_the_scripts_that_the_document_loads_are_small() -> None:
    built = Path(str(files("gateway.web") / "built"))
    if not load_page_files(built).is_built:
        pytest.skip("the page is not built: run scripts/page")
    loaded = re.findall(r"/assets/([\w.-]+\.js)", (built / "index.html").read_text())
    sizes = {name: (built / "assets" / f"{name}.gz").stat().st_size for name in loaded}

    assert sizes
    assert sum(sizes.values()) <= INITIAL_BYTES_MAX


async def test_an_absent_asset_is_a_problem(stack: GatewayStack) -> None:
    reply = await stack.anonymous.request("GET", "/assets/none.js")

    assert (reply.status, json.loads(reply.body)["code"]) == (404, "NO_SUCH_PATH")
