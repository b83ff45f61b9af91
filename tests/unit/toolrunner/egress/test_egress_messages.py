"""What is read of requests, and what of it goes on."""

import itertools
import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrunner.egress import Delivery, Grant, HostPattern, HostPort, Reason, Refused, SecretValue
from toolrunner.egress.domain.client_hello import (
    ClientHello,
    HelloUnreadable,
    handshake_of,
    read_hello,
)
from toolrunner.egress.domain.grants import grant_for, header_of, is_git_path
from toolrunner.egress.domain.http_heads import (
    Body,
    RequestHead,
    passed_on,
    read_request,
    read_response,
)
from toolrunner.egress.domain.secret_mask import Mask, spellings
from toolrunner.egress.domain.targets import Plain, Secured, Tunnel, target_of
from toolrunner.egress.domain.variables import git_variables, variables_of

HOST = b"\r\nHost: a.example"


def test_a_request_is_read_as_it_is() -> None:
    head = read_request(b"POST http://a.example/x?y HTTP/1.1" + HOST + b"\r\nContent-Length:  3 ")

    assert head == RequestHead(
        "POST",
        "http://a.example/x?y",
        (("Host", "a.example"), ("Content-Length", "3")),
        Body(3),
    )


@pytest.mark.parametrize(
    "text",
    [
        b"GET http://a.example/ HTTP/1.1",
        b"GET http://a.example/ HTTP/2.0" + HOST,
        b"GET  http://a.example/ HTTP/1.1" + HOST,
        b"GET http://a.example/ x HTTP/1.1" + HOST,
        b"GET http://a.ex\x00ample/ HTTP/1.1" + HOST,
        b"GET http://a.example/\xff HTTP/1.1" + HOST,
        b"\r\nGET http://a.example/ HTTP/1.1" + HOST,
        b"GET http://a.example/ HTTP/1.1" + HOST + HOST,
        b"GET http://a.example/ HTTP/1.1" + HOST + b"\r\nX : y",
        b"GET http://a.example/ HTTP/1.1" + HOST + b"\r\n folded",
        b"GET http://a.example/ HTTP/1.1" + HOST + b"\r\nX: a\nY: b",
        b"GET http://a.example/ HTTP/1.1" + HOST + b"\r\nX: a\rY: b",
        b"GET http://a.example/ HTTP/1.1" + HOST + b"\r\nX: a\x00b",
        b"GET http://a.example/ HTTP/1.1" + HOST + b"\r\nno colon",
        b"POST / HTTP/1.1" + HOST + b"\r\nContent-Length: 1\r\nContent-Length: 1",
        b"POST / HTTP/1.1" + HOST + b"\r\nContent-Length: +1",
        b"POST / HTTP/1.1" + HOST + b"\r\nContent-Length: 0x1",
        b"POST / HTTP/1.1" + HOST + b"\r\nContent-Length: 1, 1",
        b"POST / HTTP/1.1" + HOST + b"\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
        b"POST / HTTP/1.1" + HOST + b"\r\nTransfer-Encoding: gzip, chunked",
        b"POST / HTTP/1.1" + HOST + b"\r\nTransfer-Encoding: xchunked",
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(text: bytes) -> None:
    with pytest.raises(Refused) as refusal:
        read_request(text)

    assert refusal.value.reason is Reason.MALFORMED


def test_what_belongs_to_the_connection_stays_behind() -> None:
    fields = (
        ("Connection", "close, X-Secret-Hop, Content-Length"),
        ("X-Secret-Hop", "1"),
        ("Proxy-Authorization", "Basic x"),
        ("Content-Length", "3"),
        ("Accept", "*/*"),
        ("TE", "trailers"),
    )

    assert passed_on(fields, without=["accept"]) == (("Content-Length", "3"),)


def test_an_answer_that_is_no_http_is_refused() -> None:
    with pytest.raises(Refused) as refusal:
        read_response(b"SSH-2.0-OpenSSH")

    assert refusal.value.reason is Reason.BAD_ANSWER


@pytest.mark.parametrize(
    ("line", "host", "target"),
    [
        ("CONNECT a.example:443", "a.example:443", Tunnel(HostPort("a.example", 443))),
        ("CONNECT A.example:443", "a.example", Tunnel(HostPort("a.example", 443))),
        ("GET http://a.example/x?y", "a.example", Plain(HostPort("a.example", 80), "/x?y")),
        ("GET http://a.example:81?y", "a.example:81", Plain(HostPort("a.example", 81), "/?y")),
        ("GET /https/a.example/x", "127.0.0.1:3128", Secured(HostPort("a.example", 443), "/x")),
        ("GET /https/a.example:8443", "localhost", Secured(HostPort("a.example", 8443), "/")),
        ("GET /https/a.example%3A8443/x", "localhost", Secured(HostPort("a.example", 8443), "/x")),
    ],
)
def test_three_forms_are_known(line: str, host: str, target: object) -> None:
    assert target_of(read_request(f"{line} HTTP/1.1\r\nHost: {host}".encode())) == target


@pytest.mark.parametrize(
    ("line", "host"),
    [
        ("CONNECT a.example", "a.example"),
        ("CONNECT a.example:443", "b.example:443"),
        ("CONNECT user@a.example:443", "a.example:443"),
        ("CONNECT a.example:443/", "a.example:443"),
        ("CONNECT a.example.:443", "a.example.:443"),
        ("GET http://user:pass@a.example/", "a.example"),
        ("GET http://a.example@b.example/", "b.example"),
        ("GET http://a.example/", "b.example"),
        ("GET http://a.example:81/", "a.example"),
        ("GET http://a.example\\@b.example/", "a.example"),
        ("GET http://a.example#@b.example/", "a.example"),
        ("GET http:///x", "a.example"),
        ("GET https://a.example/", "a.example"),
        ("GET ftp://a.example/", "a.example"),
        ("GET /https/user@a.example/", "127.0.0.1"),
        ("GET /https/a.example%3A443%3A80/", "127.0.0.1"),
        ("GET /https/a.example%3A/", "127.0.0.1"),
        ("GET /https/a%3Ab.example/", "127.0.0.1"),
        ("GET /https/a.example%2F/", "127.0.0.1"),
        ("GET /https/a.example/", "a.example"),
        ("GET /http/a.example/", "127.0.0.1"),
        ("GET //https/a.example/", "127.0.0.1"),
        ("OPTIONS *", "a.example"),
        ("TRACE http://a.example/", "a.example"),
        ("CONNECTS a.example:443", "a.example:443"),
    ],
)
def test_what_is_none_of_the_three_forms_is_refused(line: str, host: str) -> None:
    with pytest.raises(Refused):
        target_of(read_request(f"{line} HTTP/1.1\r\nHost: {host}".encode()))


@pytest.mark.parametrize(
    ("line", "extra"),
    [
        ("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443", ""),
        (
            "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443",
            "\r\nProxy-Authorization: Basic d29ya3NwYWNlOnRva2Vu",
        ),
        ("GET /https/a.example/ HTTP/1.1\r\nHost: 127.0.0.1", ""),
        ("GET /~token/https/a.example/ HTTP/1.1\r\nHost: 127.0.0.1", ""),
    ],
)
def test_a_port_wants_to_be_shown_the_workspaces_token(line: str, extra: str) -> None:
    head = read_request((line + extra).encode())

    with pytest.raises(Refused) as refusal:
        target_of(head, "another")

    assert refusal.value.reason is Reason.WRONG_TOKEN
    if extra or "~" in line:
        assert target_of(head, "token").host_port == HostPort("a.example", 443)


def hello_for(name: str | None) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    sent = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read()


@pytest.mark.parametrize("name", ["github.com", "a.b.example"])
def test_the_name_in_a_real_hello_is_found(name: str) -> None:
    message = handshake_of(hello_for(name))

    assert message is not None
    assert read_hello(message) == ClientHello(name)


def test_a_hello_without_a_name_names_nobody() -> None:
    message = handshake_of(hello_for(None))

    assert message is not None
    assert read_hello(message) == ClientHello("")


def test_a_hello_in_pieces_is_waited_for() -> None:
    records = hello_for("github.com")

    assert [handshake_of(records[:end]) for end in range(len(records))] == [None] * len(records)


def test_a_hello_over_several_records_is_one() -> None:
    whole = hello_for("github.com")
    message = whole[5:]
    parts = [message[:7], message[7:100], message[100:]]
    records = b"".join(b"\x16\x03\x01" + len(part).to_bytes(2) + part for part in parts)

    assert handshake_of(records) == message


@given(st.binary(max_size=400))
def test_no_bytes_break_the_reader_of_hellos(text: bytes) -> None:
    try:
        message = handshake_of(text)
        if message is not None:
            read_hello(message)
    except HelloUnreadable:
        pass


HELLO = hello_for("github.com")


@given(st.data())
def test_a_damaged_hello_is_read_or_refused(data: st.DataObject) -> None:
    text = bytearray(HELLO)
    text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    try:
        message = handshake_of(bytes(text))
        if message is not None:
            read_hello(message)
    except HelloUnreadable:
        pass


GIT = Grant("deploy", (HostPattern.parse("git.host.example"),), Delivery.GIT)
API = Grant("api", (HostPattern.parse("*.host.example:443"),))
KEY = Grant("key", (HostPattern.parse("git.host.example:8443"),), header="PRIVATE-TOKEN")
ENVIRONMENT = Grant("env", (HostPattern.parse("other.test"),), Delivery.ENVIRONMENT)


@pytest.mark.parametrize(
    ("host_port", "path", "grant"),
    [
        ("git.host.example:443", "/a/b.git/info/refs?service=git-upload-pack", GIT),
        ("git.host.example:443", "/a/b.git/git-receive-pack", GIT),
        ("git.host.example:443", "/a/b.git/info/lfs/objects/batch", GIT),
        ("git.host.example:443", "/a/b.git/info/refs?service=git-upload-pack&x", API),
        ("git.host.example:443", "/api/v1/x?y=/git-upload-pack", API),
        ("www.host.example:443", "/a.git/git-upload-pack", API),
        ("git.host.example:8443", "/", KEY),
        ("git.host.example:80", "/", None),
        ("host.example:443", "/", None),
        ("git.host.example.evil.test:443", "/a.git/git-upload-pack", None),
        ("other.test:443", "/", None),
    ],
)
def test_a_secret_goes_where_its_grant_says(host_port: str, path: str, grant: Grant | None) -> None:
    grants = (ENVIRONMENT, KEY, API, GIT)

    assert grant_for(grants, HostPort.parse(host_port), path) is grant


@pytest.mark.parametrize(
    "path",
    [
        "/x/info/lfs/../../../api/v3/user/keys",
        "/x/info/lfs/..",
        "/x/info/lfs/./a",
        "/x/info/lfs//a",
        "//api/info/lfs/a",
        "/x/info/lfs/%2e%2e/%2E%2E/api/v3/user",
        "/x/info/lfs/..%2f..%2fapi",
        "/x/info/lfs/%252e%252e/api",
        "/x/info/lfs/..;/..;a=b/api/v3/user",
        "/x/info/lfs/..%5c..%5capi",
        "/api/v3/user/../x/git-upload-pack",
        "/x/info/lfs/a%00/../b",
    ],
)
def test_a_secret_for_git_does_not_go_where_a_winding_path_may_lead(path: str) -> None:
    assert grant_for((GIT,), HostPort.parse("git.host.example:443"), path) is None
    assert is_git_path("/~ada/a..b/.git/info/lfs/objects/batch")


@pytest.mark.parametrize(
    ("grant", "secret", "header"),
    [
        (GIT, SecretValue("", b"v"), ("Authorization", "Basic eC1hY2Nlc3MtdG9rZW46dg==")),
        (API, SecretValue("", b"v"), ("Authorization", "Bearer v")),
        (API, SecretValue("ada", b"v"), ("Authorization", "Basic YWRhOnY=")),
        (KEY, SecretValue("ada", b"v"), ("PRIVATE-TOKEN", "v")),
    ],
)
def test_a_header_carries_the_secret(
    grant: Grant, secret: SecretValue, header: tuple[str, str]
) -> None:
    assert header_of(grant, secret) == header
    assert "v" not in repr(secret).replace("value", "").replace("SecretValue", "")


@pytest.mark.parametrize("value", [b"a\r\nX: y", b"a\x00", "ä".encode(), b"x" * 9000])
def test_a_value_that_cannot_stand_in_a_header_is_not_sent(value: bytes) -> None:
    with pytest.raises(ValueError, match="value"):
        header_of(API, SecretValue("", value))


@given(st.binary(min_size=8, max_size=20), st.lists(st.binary(max_size=30), max_size=8), st.data())
def test_a_repeated_secret_is_masked_wherever_the_pieces_meet(
    secret: bytes, around: list[bytes], data: st.DataObject
) -> None:
    whole = secret.join([b"<", *around, b">"])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    edges = [0, *cuts, len(whole)]
    mask = Mask([secret])

    shown = b"".join(mask.pass_on(whole[a:b]) for a, b in itertools.pairwise(edges))
    shown += mask.finish()

    assert len(shown) == len(whole)
    assert secret == b"*" * len(secret) or secret not in shown


REPETITIVE = st.builds(
    lambda unit, times, end: unit * times + end,
    st.text("ab", min_size=1, max_size=5).map(str.encode),
    st.integers(8, 150),
    st.text("ab", max_size=5).map(str.encode),
)


@given(st.lists(REPETITIVE, min_size=1, max_size=3, unique=True), st.data())
def test_the_longest_beginning_of_a_secret_is_held_back(
    secrets: list[bytes], data: st.DataObject
) -> None:
    part = st.builds(lambda secret, n: secret[:n], st.sampled_from(secrets), st.integers(0, 600))
    pieces = data.draw(st.lists(part | st.text("ab", max_size=9).map(str.encode), max_size=9))
    mask, kept = Mask(secrets), b""

    for piece in pieces:
        text = kept + piece
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, b"*" * len(secret))
        held = max(n for each in secrets for n in range(len(each)) if text.endswith(each[:n]))
        kept = text[len(text) - held :]
        assert mask.pass_on(piece) == text[: len(text) - held]
    assert mask.finish() == kept


@pytest.mark.parametrize("secret", [b"a" * 65536, b"ab" * 32000 + b"c", b"k" + b"-" * 65535])
def test_a_long_secret_is_masked_after_output_that_almost_repeats_it(secret: bytes) -> None:
    mask = Mask([secret])
    almost = secret[:-2] + b"!"
    shown = [mask.pass_on(each) for each in (almost, secret[:40000], secret[40000:])]
    assert shown == [almost, b"", b"*" * len(secret)]
    assert not mask.is_holding


@pytest.mark.parametrize(
    "repeated",
    [
        b'a/"b" c&d+e',
        rb"a\/\"b\" c&d+e",
        rb"a/\"b\" c&d+e",
        b"a%2F%22b%22%20c%26d%2Be",
        b"a%2f%22b%22+c%26d%2be",
        b"a/&quot;b&quot; c&amp;d+e",
        b"YS8iYiIgYyZkK2U=",
    ],
)
def test_a_secret_is_masked_as_formats_write_it(repeated: bytes) -> None:
    mask = Mask(spellings(b'a/"b" c&d+e'))
    shown = mask.pass_on(b"<" + repeated + b">") + mask.finish()
    assert shown == b"<" + b"*" * len(repeated) + b">"


def test_variables_lead_programs_out_and_hold_no_secret() -> None:
    variables = variables_of((GIT, API, ENVIRONMENT), port=40000, token="t")

    assert variables["HTTPS_PROXY"] == "http://workspace:t@127.0.0.1:40000"
    assert variables["PARLEY_EGRESS"] == "http://127.0.0.1:40000/~t"
    assert variables["GIT_CONFIG_KEY_3"] == "credential.helper"
    without = variables_of((GIT,), port=40000, token="t", has_proxy=False)
    assert (set(variables) - set(without)) == {
        *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
    }
    assert git_variables((GIT,), "http://127.0.0.1:3128") == {
        "GIT_CONFIG_COUNT": "3",
        "GIT_CONFIG_KEY_0": "url.http://127.0.0.1:3128/https/git.host.example:443/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://git.host.example/",
        "GIT_CONFIG_KEY_1": "url.http://127.0.0.1:3128/https/git.host.example:443/.insteadOf",
        "GIT_CONFIG_VALUE_1": "https://git.host.example:443/",
        "GIT_CONFIG_KEY_2": "url.http://127.0.0.1:3128/https/git.host.example:443/.insteadOf",
        "GIT_CONFIG_VALUE_2": "git@git.host.example:",
    }
