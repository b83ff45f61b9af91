"""Files over HTTP: what goes in comes out byte for byte, and never as something that runs."""

import asyncio
import os
from hashlib import sha256
from urllib.parse import quote

import grpc
import pytest

from gateway.routes.files import (
    CHUNK_BYTES_MAX,
    FILE_BYTES_MAX,
    SILENCE_S_MAX,
)
from gateway.routes.upload_slots import UPLOADS_MAX, UPLOADS_PER_USER_MAX
from parley.api.chat.v1 import file_service_pb2 as api
from parley.identity import Role
from parley.rpc import Problem
from support.gateway.stack import GatewayStack
from support.gateway.users import client_with
from support.net.http_client import Reply

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 1000
PLAIN = {"Content-Type": "text/plain"}
IMAGE = {"Content-Type": "image/png"}


async def uploaded(
    stack: GatewayStack, data: bytes, name: str = "a.png", media_type: str = "image/png"
) -> Reply:
    path = f"/api/v1/files?name={quote(name)}"
    return await stack.owner.request("POST", path, data, {"Content-Type": media_type})


async def test_a_file_comes_back_byte_for_byte(stack: GatewayStack) -> None:
    data = os.urandom(FILE_BYTES_MAX)

    reply = await uploaded(stack, data)
    told = reply.json()
    got = await stack.owner.request("GET", reply.headers["location"])
    info = await stack.owner.request("GET", f"{reply.headers['location']}/info")

    assert reply.status == 201
    assert (
        told
        == info.json()
        == {
            "id": told["id"],
            "owner_id": told["owner_id"],
            "name": "a.png",
            "media_type": "image/png",
            "size_bytes": len(data),
            "sha256": sha256(data).hexdigest(),
            "created_at": "2027-01-15T08:00:00Z",
        }
    )
    assert stack.chatd.files.pieces == 1 + len(data) // CHUNK_BYTES_MAX
    assert (got.status, got.body == data) == (200, True)
    assert {name: got.headers[name] for name in SHOWN} == {
        "content-type": "image/png",
        "content-length": str(len(data)),
        "content-disposition": "inline; filename=\"a.png\"; filename*=UTF-8''a.png",
        "etag": f'"{sha256(data).hexdigest()}"',
        "cache-control": "private, max-age=31536000, immutable",
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
    }


SHOWN = (
    "content-type",
    "content-length",
    "content-disposition",
    "etag",
    "cache-control",
    "x-content-type-options",
    "content-security-policy",
)


async def test_an_upload_is_told_with_its_key_its_name_and_its_type(stack: GatewayStack) -> None:
    headers = {
        "Content-Type": "text/plain; charset=utf-8",
        "Content-Disposition": "attachment; filename*=UTF-8''na%C3%AFve%20%22plan%22.txt",
        "Idempotency-Key": "once",
    }

    reply = await stack.owner.request("POST", "/api/v1/files", b"hello", headers)

    assert reply.status == 201
    assert stack.chatd.requests(api.UploadHead) == [
        api.UploadHead(
            request_id="once", name='naïve "plan".txt', media_type="text/plain; charset=utf-8"
        )
    ]


async def test_an_upload_without_a_name_is_refused(stack: GatewayStack) -> None:
    reply = await stack.owner.request("POST", "/api/v1/files", b"hello", PLAIN)

    assert (reply.status, reply.json()["errors"][0]["parameter"]) == (422, "name")
    assert stack.chatd.requests(api.UploadHead) == []


async def test_a_file_that_is_too_large_is_refused_before_chatd_hears_of_it(
    stack: GatewayStack,
) -> None:
    reply = await uploaded(stack, b"x" * (FILE_BYTES_MAX + 1))

    assert (reply.status, reply.json()["code"], reply.json()["limit_bytes"]) == (
        413,
        "FILE_TOO_LARGE",
        FILE_BYTES_MAX,
    )
    assert stack.chatd.requests(api.UploadHead) == []


@pytest.mark.parametrize(
    ("problem", "status"),
    [
        (Problem(grpc.StatusCode.INVALID_ARGUMENT, "MEDIA_TYPE_REFUSED", "No.", {}), 415),
        (Problem(grpc.StatusCode.OUT_OF_RANGE, "FILE_TOO_LARGE", "No.", {}), 413),
        (Problem(grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED", "No.", {}), 422),
    ],
)
async def test_what_chatd_refuses_is_told(
    stack: GatewayStack, problem: Problem, status: int
) -> None:
    stack.chatd.refusal = problem

    reply = await uploaded(stack, b"<html>", "a.txt", "text/plain")

    assert (reply.status, reply.json()["code"]) == (status, problem.reason)


@pytest.mark.parametrize(
    ("media_type", "told", "manner"),
    [
        ("text/html", "application/octet-stream", "attachment"),
        ("image/svg+xml", "application/octet-stream", "attachment"),
        ("application/zip", "application/octet-stream", "attachment"),
        ("application/pdf", "application/pdf", "attachment"),
        ("text/plain", "text/plain", "attachment"),
        ("image/webp", "image/webp", "inline"),
    ],
)
async def test_nothing_that_could_run_is_shown_in_place(
    stack: GatewayStack, media_type: str, told: str, manner: str
) -> None:
    reply = await uploaded(stack, b"<script>1</script>", "x", media_type)

    got = await stack.owner.request("GET", reply.headers["location"])

    assert got.headers["content-type"] == told
    assert got.headers["content-disposition"].partition(";")[0] == manner


@pytest.mark.parametrize(
    ("name", "plain", "whole"),
    [
        ('a"b\\c.txt', "a_b_c.txt", "a%22b%5Cc.txt"),
        ("größe 50%.csv", "gr__e 50_.csv", "gr%C3%B6%C3%9Fe%2050%25.csv"),
        ("文.md", "_.md", "%E6%96%87.md"),
        ("a\r\nX-Evil: 1", "a__X-Evil: 1", "a%0D%0AX-Evil%3A%201"),
    ],
)
async def test_odd_names_cannot_break_out_of_their_header(
    stack: GatewayStack, name: str, plain: str, whole: str
) -> None:
    reply = await uploaded(stack, b"x", name)

    got = await stack.owner.request("GET", reply.headers["location"])

    assert got.headers["content-disposition"] == (
        f"inline; filename=\"{plain}\"; filename*=UTF-8''{whole}"
    )
    assert "x-evil" not in got.headers


@pytest.mark.parametrize(
    ("wanted", "status", "told", "first", "last"),
    [
        ("bytes=0-0", 206, "bytes 0-0/256008", 0, 1),
        ("bytes=200000-", 206, "bytes 200000-256007/256008", 200_000, 256_008),
        ("bytes=-8", 206, "bytes 256000-256007/256008", 256_000, 256_008),
        ("bytes=-999999", 206, "bytes 0-256007/256008", 0, 256_008),
        ("bytes=5-999999", 206, "bytes 5-256007/256008", 5, 256_008),
        ("bytes=9-5", 200, None, 0, 256_008),
        ("bytes=0-1,5-6", 200, None, 0, 256_008),
        ("lines=1-2", 200, None, 0, 256_008),
    ],
)
async def test_a_stretch_of_a_file_can_be_read(
    stack: GatewayStack, wanted: str, status: int, told: str | None, first: int, last: int
) -> None:
    at = (await uploaded(stack, PNG)).headers["location"]

    got = await stack.owner.request("GET", at, headers={"Range": wanted})

    assert (got.status, got.headers.get("content-range"), got.body) == (
        status,
        told,
        PNG[first:last],
    )


@pytest.mark.parametrize("wanted", ["bytes=256008-", "bytes=-0"])
async def test_bytes_that_a_file_does_not_have_are_refused(
    stack: GatewayStack, wanted: str
) -> None:
    at = (await uploaded(stack, PNG)).headers["location"]

    got = await stack.owner.request("GET", at, headers={"Range": wanted})

    assert (got.status, got.headers["content-range"]) == (416, "bytes */256008")


async def test_a_stretch_of_another_file_is_not_mixed_in(stack: GatewayStack) -> None:
    at = (await uploaded(stack, PNG)).headers["location"]

    got = await stack.owner.request("GET", at, headers={"Range": "bytes=1-", "If-Range": '"x"'})

    assert (got.status, got.body) == (200, PNG)


async def test_who_has_a_file_already_is_not_sent_it(stack: GatewayStack) -> None:
    at = (await uploaded(stack, PNG)).headers["location"]
    head = await stack.owner.request("HEAD", at)

    again = await stack.owner.request("GET", at, headers={"If-None-Match": head.headers["etag"]})

    assert (head.status, head.headers["content-length"], head.body) == (200, str(len(PNG)), b"")
    assert (again.status, again.body) == (304, b"")
    assert stack.chatd.requests(api.DownloadFileRequest) == []


async def test_a_file_of_somebody_else_and_an_impossible_one_look_absent(
    stack: GatewayStack, identity_database: str
) -> None:
    at = (await uploaded(stack, PNG)).headers["location"]
    ben = await client_with(stack, identity_database, Role.MEMBER)

    for path in (at, f"{at}/info", "/api/v1/files/nonsense", "/api/v1/files/nonsense/info"):
        reply = await ben.request("GET", path)
        assert (reply.status, reply.json()["code"]) == (404, "FILE_NOT_FOUND"), path


async def test_a_download_that_breaks_off_is_cut_rather_than_ended(stack: GatewayStack) -> None:
    at = (await uploaded(stack, PNG)).headers["location"]
    stack.chatd.files.is_cut_off = True

    with pytest.raises(asyncio.IncompleteReadError):
        await stack.owner.request("GET", at)


async def begun(stack: GatewayStack) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Begin an upload that never ends."""
    port = stack.gateway.http.port
    lines = (
        "POST /api/v1/files?name=a HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        f"Authorization: Bearer {stack.owner_key.reveal()}",
        "Content-Length: 1000",
        "Expect: 100-continue",
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write("\r\n".join((*lines, "", "")).encode())
    # The server asks for the body once its route reads it.
    assert (await reader.readline()).split()[1] == b"100"
    return reader, writer


async def test_uploads_that_do_not_end_take_no_more_than_the_places_of_their_user(
    stack: GatewayStack, identity_database: str
) -> None:
    other = await client_with(stack, identity_database, Role.MEMBER)
    async with asyncio.timeout(20):
        slow = [await begun(stack) for _ in range(UPLOADS_PER_USER_MAX)]
        full = await uploaded(stack, PNG)
        others = await other.request("POST", "/api/v1/files?name=a.png", PNG, IMAGE)
        for _, writer in slow:
            writer.close()
            await writer.wait_closed()
        while (reply := await uploaded(stack, PNG)).status != 201:
            assert reply.json()["code"] == "TOO_MANY_UPLOADS"

    assert (full.status, full.json()["code"]) == (429, "TOO_MANY_UPLOADS")
    assert others.status == 201
    assert UPLOADS_PER_USER_MAX < UPLOADS_MAX


async def test_an_upload_that_falls_silent_is_given_up(stack: GatewayStack) -> None:
    async with asyncio.timeout(20):
        reader, writer = await begun(stack)
        stack.clock.advance(SILENCE_S_MAX)
        told = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert b"408" in told
    assert b"BODY_TOO_SLOW" in told
