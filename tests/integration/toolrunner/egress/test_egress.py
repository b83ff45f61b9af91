"""The proxy on real sockets: what passes, what is refused, and what is added."""

import asyncio
import gc
import socket
import ssl
import warnings
from pathlib import Path

import pytest

from support.toolrunner.egress_stage import (
    LIMITS,
    OTHER_PUBLIC,
    PATIENCE_S,
    PUBLIC,
    TOKEN,
    WORKSPACE,
    Stage,
    staged,
)
from toolrunner.egress import (
    Access,
    Delivery,
    Grant,
    HostPattern,
    Limits,
    Policy,
    ProxyAccessRecord,
    Rules,
    SecretUse,
    SecretValue,
)
from toolrunner.primitives.domain import WorkspaceId

VALUE = b"s3cr3t-value-of-the-owner"
API = Grant("api", (HostPattern.parse("secure.example"),))
SECURED = b"GET /https/secure.example/v1?q=1 HTTP/1.1\r\nHost: 127.0.0.1:3128\r\n"
PLAIN = b"GET http://plain.example/x HTTP/1.1\r\nHost: plain.example\r\n"
CONNECT = b"CONNECT secure.example:443 HTTP/1.1\r\nHost: secure.example:443\r\n\r\n"


async def noted(stage: Stage, count: int = 1) -> list[ProxyAccessRecord]:
    """Wait until the proxy is through with a connection."""
    async with asyncio.timeout(PATIENCE_S):
        while len(stage.audit.access_records) < count:
            await stage.audit.changed.wait()
            stage.audit.changed.clear()
    return stage.audit.access_records


async def test_a_plain_request_passes_in_the_proxys_own_words(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        answer = await stage.ask(PLAIN + b"X-Mine: 1\r\nProxy-Connection: keep-alive\r\n\r\n")
        [record] = await noted(stage)

    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert stage.plain.requests == [
        b"GET /x HTTP/1.1\r\nHost: plain.example\r\nX-Mine: 1\r\nConnection: close\r\n\r\n"
    ]
    assert (record.form, record.host_port, record.request, record.outcome, record.address) == (
        *("plain", "plain.example:80", "GET /x", "passed"),
        OTHER_PUBLIC,
    )


async def test_a_tunnel_carries_the_workspaces_own_tls(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        trust = ssl.create_default_context(cafile=str(tmp_path / "authority.pem"))
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await stage.connect()
            writer.write(CONNECT)
            assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
            await writer.start_tls(trust, server_hostname="secure.example")
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            assert b"GET / HTTP/1.1" in await reader.read()
            writer.close()
        [record] = await noted(stage)

    assert stage.network.connected == [(PUBLIC, 443)]
    assert record.outcome == "passed"
    assert record.sent_bytes > 0
    assert record.received_bytes > 0


async def test_a_secret_is_added_and_is_nowhere_in_the_workspace(tmp_path: Path) -> None:
    async with staged(tmp_path, grants=(API,), values={"api": SecretValue("", VALUE)}) as stage:
        answer = await stage.ask(SECURED + b"authorization: mine\r\nAccept-Encoding: gzip\r\n\r\n")
        [record] = await noted(stage)

    assert stage.secured.requests == [
        b"GET /v1?q=1 HTTP/1.1\r\nHost: secure.example\r\nAuthorization: Bearer "
        + VALUE
        + b"\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n"
    ]
    # The origin repeats what it got.
    assert b"Authorization: Bearer " + b"*" * len(VALUE) in answer
    assert VALUE not in answer
    assert stage.secrets.uses == [SecretUse(WORKSPACE, "api", "secure.example:443", "GET /v1")]
    assert record.secret_name == "api"
    assert VALUE.decode() not in repr(record)


def chunked(*pieces: bytes, extension: bytes = b"") -> bytes:
    """Return an answer in chunks, with a trailer that repeats the last of them."""
    chunks = (b"%x%b\r\n%b\r\n" % (len(each), extension, each) for each in pieces if each)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 7\r\n\r\n"
    return head + b"".join(chunks) + b"0\r\nX-Again: " + pieces[-1] + b"\r\n\r\n"


def content_of(answer: bytes) -> bytes:
    """Return what an answer in chunks holds, which has to end."""
    head, _, rest = answer.partition(b"\r\n\r\n")
    assert b"content-length" not in head.lower()
    content = b""
    while True:
        length, _, rest = rest.partition(b"\r\n")
        if not int(length, 16):
            assert rest == b"\r\n"
            return content
        content += rest[: int(length, 16)]
        assert rest[int(length, 16) :][:2] == b"\r\n"
        rest = rest[int(length, 16) + 2 :]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, len(VALUE), 1000])
@pytest.mark.parametrize("extension", [b"", b";a=b"])
async def test_a_secret_that_is_cut_into_chunks_is_masked(
    tmp_path: Path, size: int, extension: bytes
) -> None:
    text = b"<" + VALUE + b"|" + VALUE[:5] + b"|" + VALUE + b">"
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    async with staged(tmp_path, grants=(API,), values={"api": SecretValue("", VALUE)}) as stage:
        stage.secured.answer = chunked(*pieces, extension=extension)
        answer = await stage.ask(SECURED + b"\r\n")

    stars = b"*" * len(VALUE)
    assert content_of(answer) == b"<" + stars + b"|" + VALUE[:5] + b"|" + stars + b">"
    assert b"X-Again" not in answer


async def test_chunks_of_an_answer_without_a_secret_stay_as_they_are(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.secured.answer = chunked(b"one", b"two", extension=b";a=b")
        answer = await stage.ask(SECURED + b"\r\n")

    assert answer.endswith(b"\r\n\r\n3;a=b\r\none\r\n3;a=b\r\ntwo\r\n0\r\nX-Again: two\r\n\r\n")


@pytest.mark.parametrize(
    "cut",
    [
        b"5\r\nab",
        b"5\r\nabcdeXX0\r\n\r\n",
        b"zz\r\nabcde",
        b"",
    ],
)
async def test_a_cut_answer_in_chunks_does_not_look_complete(tmp_path: Path, cut: bytes) -> None:
    async with staged(tmp_path, grants=(API,), values={"api": SecretValue("", VALUE)}) as stage:
        stage.secured.answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + cut
        answer = await stage.ask(SECURED + b"\r\n")

    assert not answer.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize(
    "fields",
    [
        b"Content-Encoding: gzip\r\nContent-Length: 5\r\n",
        b"Content-Encoding: identity\r\nContent-Encoding: br\r\nContent-Length: 5\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Content-Encoding: zstd\r\n",
    ],
)
async def test_an_answer_in_which_a_secret_would_not_be_found_is_refused(
    tmp_path: Path, fields: bytes
) -> None:
    async with staged(tmp_path, grants=(API,), values={"api": SecretValue("", VALUE)}) as stage:
        stage.secured.answer = b"HTTP/1.1 200 OK\r\n" + fields + b"\r\nabcde"
        answer = await stage.ask(SECURED + b"\r\n")

    assert answer.startswith(b"HTTP/1.1 502 ")
    assert b"reason=bad_answer" in answer


async def test_no_part_of_an_answer_is_asked_for_with_a_secret(tmp_path: Path) -> None:
    async with staged(tmp_path, grants=(API,), values={"api": SecretValue("", VALUE)}) as stage:
        await stage.ask(SECURED + b"Range: bytes=0-9\r\nIf-Range: x\r\nAccept: y\r\n\r\n")

    [request] = stage.secured.requests
    assert b"range" not in request.lower()
    assert b"Accept: y" in request


@pytest.mark.parametrize(
    ("grant", "request_text"),
    [
        (Grant("api", (HostPattern.parse("other.example"),)), SECURED),
        (Grant("api", (HostPattern.parse("secure.example:8443"),)), SECURED),
        (Grant("api", (HostPattern.parse("secure.example"),), Delivery.GIT), SECURED),
        (Grant("api", (HostPattern.parse("plain.example:80"),)), PLAIN),
    ],
)
async def test_a_secret_for_another_place_or_use_is_not_asked_for(
    tmp_path: Path, grant: Grant, request_text: bytes
) -> None:
    async with staged(tmp_path, grants=(grant,), values={"api": SecretValue("", VALUE)}) as stage:
        answer = await stage.ask(request_text + b"\r\n")

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert stage.secrets.uses == []
    assert VALUE not in b"".join(stage.secured.requests + stage.plain.requests)


async def test_without_the_secret_the_request_does_not_leave(tmp_path: Path) -> None:
    async with staged(tmp_path, grants=(API,)) as stage:
        answer = await stage.ask(SECURED + b"\r\n")

    assert answer.startswith(b"HTTP/1.1 502 ")
    assert b"not granted to this workspace any more" in answer
    assert stage.secured.requests == []


async def test_a_redirect_comes_back_through_the_proxy_without_the_secret(tmp_path: Path) -> None:
    async with staged(tmp_path, grants=(API,), values={"api": SecretValue("", VALUE)}) as stage:
        stage.secured.answer = (
            b"HTTP/1.1 302 Found\r\nLocation: https://evil.example/x\r\nContent-Length: 0\r\n\r\n"
        )
        answer = await stage.ask(SECURED + b"\r\n")
        followed = await stage.ask(b"GET /https/evil.example/x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")

    assert b"Location: /https/evil.example/x\r\n" in answer
    assert followed.startswith(b"HTTP/1.1 403 ")
    assert len(stage.secrets.uses) == 1


async def test_a_server_with_another_certificate_gets_no_secret(tmp_path: Path) -> None:
    grant = Grant("api", (HostPattern.parse("imposter.test"),))
    async with staged(
        tmp_path,
        allowed=("imposter.test",),
        answers={"imposter.test": [(PUBLIC,)]},
        grants=(grant,),
        values={"api": SecretValue("", VALUE)},
    ) as stage:
        answer = await stage.ask(b"GET /https/imposter.test/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 502 ")
    assert b"reason=untrusted" in answer
    assert stage.secrets.uses == []


async def test_a_refusal_tells_what_to_do(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        answer = await stage.ask(
            b"CONNECT elsewhere.example:443 HTTP/1.1\r\nHost: elsewhere.example:443\r\n\r\n"
        )
        [record] = await noted(stage)

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 403 Refused by the egress proxy (not_allowed)\r\n")
    assert b"elsewhere.example:443 is not allowed" in body
    assert b"owner can allow the host" in body
    assert record.outcome == "not_allowed"


async def test_a_port_serves_only_whoever_shows_the_token(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        without = await stage.ask(PLAIN + b"\r\n", is_port=True)
        with_token = await stage.ask(
            SECURED.replace(b"/https", f"/~{TOKEN}/https".encode()) + b"\r\n", is_port=True
        )

    assert without.startswith(b"HTTP/1.1 407 ")
    assert with_token.startswith(b"HTTP/1.1 200 ")


async def test_new_rules_cut_off_what_passes_under_the_old(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await stage.connect()
            writer.write(CONNECT)
            await reader.readuntil(b"\r\n\r\n")
            await stage.egress.open(Rules(WORKSPACE, Policy()))
            assert await reader.read() == b""
            writer.close()
        answer = await stage.ask(CONNECT)
        outcomes = [record.outcome for record in await noted(stage, 2)]

    assert b"reason=no_network" in answer
    assert outcomes == ["cut_off", "no_network"]


async def test_a_workspace_has_only_so_many_connections(tmp_path: Path) -> None:
    limits = Limits(connections=1, head_s=5.0)
    async with staged(tmp_path, limits=limits) as stage:
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await stage.connect()
            writer.write(CONNECT)
            await reader.readuntil(b"\r\n\r\n")
            answer = await stage.ask(b"")
            writer.close()

    assert answer.startswith(b"HTTP/1.1 429 ")


@pytest.mark.parametrize(
    ("request_text", "reason"),
    [
        (PLAIN + b"X: " + b"x" * LIMITS.head_bytes + b"\r\n\r\n", b"too_large"),
        (PLAIN, b"too_slow"),
    ],
)
async def test_a_head_is_bounded_in_size_and_time(
    tmp_path: Path, request_text: bytes, reason: bytes
) -> None:
    async with staged(tmp_path, limits=Limits(head_s=0.3)) as stage:
        answer = await stage.ask(request_text)

    assert b"reason=" + reason in answer
    assert stage.plain.requests == []


async def test_an_open_network_reaches_what_is_public_and_nothing_else(tmp_path: Path) -> None:
    async with staged(
        tmp_path, access=Access.OPEN, answers={"inside.example": [("127.0.0.1",)]}
    ) as stage:
        public = await stage.ask(PLAIN + b"\r\n")
        private = await stage.ask(
            b"GET http://inside.example:%d/ HTTP/1.1\r\nHost: inside.example:%d\r\n\r\n"
            % (stage.inside.port, stage.inside.port)
        )

    assert public.startswith(b"HTTP/1.1 200 ")
    assert b"reason=private_address" in private
    assert stage.inside.connections == 0


async def test_a_closed_exit_is_gone(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.egress.close(WORKSPACE)

        assert stage.egress.endpoint_of(WORKSPACE) is None
        for is_port in (True, False):
            with pytest.raises(ConnectionError):
                await stage.connect(is_port=is_port)


async def test_a_name_that_turns_inside_leads_to_the_address_that_was_judged(
    tmp_path: Path,
) -> None:
    async with staged(
        tmp_path,
        allowed=("turning.example",),
        answers={"turning.example": [(OTHER_PUBLIC,), ("127.0.0.1",)]},
    ) as stage:
        request = b"GET http://turning.example/ HTTP/1.1\r\nHost: turning.example\r\n\r\n"
        answers = [await stage.ask(request), await stage.ask(request)]

    assert [answer[:13] for answer in answers] == [b"HTTP/1.1 200 ", b"HTTP/1.1 403 "]
    assert stage.network.connected == [(OTHER_PUBLIC, 80)]


async def test_a_door_that_is_known_before_its_rules_lets_nothing_out(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        door = socket.create_server(("127.0.0.1", 0))
        other = WorkspaceId("22222222-2222-4222-8222-222222222222")
        stage.namespace_port = door.getsockname()[1]
        stage.egress.take_listener(other, door.detach())
        before = await stage.ask(PLAIN + b"\r\n")
        allowed = Policy.read(Access.PROXY, allowed_hosts=["plain.example"])
        await stage.egress.open(Rules(other, allowed))
        after = await stage.ask(PLAIN + b"\r\n")

    assert b"reason=no_network" in before
    assert after.startswith(b"HTTP/1.1 200 ")


async def one_turn() -> None:
    """Let everything happen that is scheduled now."""
    loop = asyncio.get_running_loop()
    happened = loop.create_future()
    loop.call_soon(happened.set_result, None)
    await happened


async def closed_while_called(tmp_path: Path, turns: int) -> None:
    """Call an exit and its door, and close them after a few turns of the loop."""
    callers = []
    async with staged(tmp_path) as stage:
        await one_turn()
        for port in (stage.endpoint.port, stage.namespace_port) * 5:
            callers.append(socket.socket())
            callers[-1].setblocking(False)
            callers[-1].connect_ex(("127.0.0.1", port))
        for _ in range(turns):
            await one_turn()
    for caller in callers:
        caller.close()
    await one_turn()


async def test_a_connection_that_comes_while_its_exit_closes_is_not_left_open(
    tmp_path: Path,
) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for turns in (0, 1, 2, 3, 4, 5):
            await closed_while_called(tmp_path, turns)
        gc.collect()

    assert [str(each.message) for each in told] == []
