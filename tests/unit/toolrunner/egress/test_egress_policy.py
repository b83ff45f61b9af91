"""What a workspace may reach, as a decision."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrunner.egress import (
    PRESETS,
    Access,
    HostPattern,
    HostPort,
    Policy,
    PolicyInvalid,
    Preset,
    Reason,
    Refused,
    Transport,
)
from toolrunner.egress.domain.hosts import canonical_host

LABELS = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)
HOSTS = st.lists(LABELS, min_size=2, max_size=4).map(".".join)
PLACES = st.builds(HostPort, HOSTS, st.integers(1, 65535))


@pytest.mark.parametrize(
    "host",
    [
        "",
        "example.org.",
        "example..org",
        ".example.org",
        "exa mple.org",
        "example.org\x00.evil.test",
        "user@example.org",
        "example.org\r\nX: y",
        "exämple.org",
        "example。org",
        "127.1",
        "0177.0.0.1",
        "0x7f.0.0.1",
        "2130706433",
        "0x7f000001",
        "127.0.0.01",
        "127.0.0.1.",
        "::1",
        "[::1",
        "[fe80::1%25eth0]",
        "[fe80::1%eth0]",
        "[127.0.0.1]",
        "-a.example",
        "a" * 64 + ".org",
        ".".join(["a" * 60] * 5),
        "%6c%6f%63%61%6c",
    ],
)
def test_an_odd_host_is_no_host(host: str) -> None:
    with pytest.raises(ValueError, match="holds"):
        canonical_host(host)


@pytest.mark.parametrize(
    ("given_text", "canonical"),
    [
        ("GitHub.COM", "github.com"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("127.0.0.1", "127.0.0.1"),
        ("[0:0:0:0:0:0:0:1]", "::1"),
        ("[::FFFF:10.0.0.1]", "::ffff:10.0.0.1"),
        ("my_host.example", "my_host.example"),
    ],
)
def test_a_host_has_one_spelling(given_text: str, canonical: str) -> None:
    assert canonical_host(given_text).replace("::ffff:a00:1", "::ffff:10.0.0.1") == canonical


@pytest.mark.parametrize("text", ["h:0", "h:65536", "h:080", "h:+80", "h: 80", "h:8x", "h:", "h"])
def test_an_odd_port_is_no_port(text: str) -> None:
    with pytest.raises(ValueError, match=r"holds|names"):
        HostPort.parse(text)


@pytest.mark.parametrize(
    "pattern", ["*", "*.org", "*.127.0.0.1", "a.*.org", "http://a.org", "tcp://a.org", "a.org/x"]
)
def test_a_pattern_that_is_too_wide_or_odd_is_refused(pattern: str) -> None:
    with pytest.raises(PolicyInvalid):
        HostPattern.parse(pattern)


TABLE = Policy.read(
    Access.PROXY,
    presets=["github", "debian"],
    own_presets=[Preset.parse("debian=deb.example.com")],
    allowed_hosts=["*.example.org", "example.net:8443", "tcp://git.example.net:22", "192.0.2.9"],
    denied_hosts=["evil.example.org", "*.bad.example.org", "codeload.github.com:443"],
)


@pytest.mark.parametrize(
    ("host_port", "transport", "is_allowed"),
    [
        ("github.com:443", Transport.TLS, True),
        ("github.com:80", Transport.HTTP, False),
        ("github.com:22", Transport.TLS, False),
        ("notgithub.com:443", Transport.TLS, False),
        ("github.com.evil.test:443", Transport.TLS, False),
        ("raw.githubusercontent.com:443", Transport.TLS, True),
        ("githubusercontent.com:443", Transport.TLS, False),
        ("codeload.github.com:443", Transport.TLS, False),
        ("deb.example.com:80", Transport.HTTP, True),
        ("deb.example.com:443", Transport.TLS, True),
        ("deb.example.com:80", Transport.TLS, False),
        ("deb.example.com:443", Transport.HTTP, False),
        ("www.example.org:443", Transport.TLS, True),
        ("a.b.example.org:80", Transport.HTTP, True),
        ("example.org:443", Transport.TLS, False),
        ("www.example.org:8080", Transport.HTTP, False),
        ("evil.example.org:443", Transport.TLS, False),
        ("x.bad.example.org:443", Transport.TLS, False),
        ("bad.example.org:443", Transport.TLS, True),
        ("example.net:8443", Transport.TLS, True),
        ("example.net:443", Transport.TLS, False),
        ("git.example.net:22", Transport.RAW, True),
        ("git.example.net:22", Transport.TLS, False),
        ("www.example.org:443", Transport.RAW, False),
        ("192.0.2.9:443", Transport.TLS, True),
        ("192.0.2.8:443", Transport.TLS, False),
    ],
)
def test_a_policy_allows_what_it_names(
    host_port: str, transport: Transport, is_allowed: bool
) -> None:
    assert TABLE.allows(HostPort.parse(host_port), transport) is is_allowed


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (Policy(), Reason.NO_NETWORK),
        (Policy.read(Access.PROXY), Reason.NOT_ALLOWED),
        (Policy.read(Access.OPEN, denied_hosts=["a.example"]), Reason.DENIED),
    ],
)
def test_a_refusal_says_why_and_what_to_do(policy: Policy, reason: Reason) -> None:
    with pytest.raises(Refused) as refusal:
        policy.check_host_port(HostPort("a.example", 443), Transport.TLS)

    assert refusal.value.reason is reason
    assert "a.example:443" in str(refusal.value)
    assert len(str(refusal.value)) > len(refusal.value.problem)


def test_an_unknown_preset_is_refused_with_those_that_exist() -> None:
    with pytest.raises(PolicyInvalid, match="github"):
        Policy.read(Access.PROXY, presets=["githup"])


@pytest.mark.parametrize("text", ["", "pypi", "pypi=", "=a.example", "py pi=a.example", "a=*.com"])
def test_what_is_no_list_of_hosts_under_a_name_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is "):
        Preset.parse(text)


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_every_preset_can_be_read(preset: str) -> None:
    assert Policy.read(Access.PROXY, presets=[preset]).allowed


@given(PLACES, st.sampled_from(Transport), st.sampled_from(Access))
def test_denying_wins_whatever_allows(
    host_port: HostPort, transport: Transport, access: Access
) -> None:
    prefix = "tcp://" if transport is Transport.RAW else ""
    policy = Policy.read(
        access,
        allowed_hosts=[f"{prefix}{host_port}", f"{host_port}"],
        denied_hosts=[host_port.host],
    )

    assert not policy.allows(host_port, transport)


@given(PLACES, PLACES, st.sampled_from(Transport))
def test_one_allowed_place_opens_no_other(
    one: HostPort, other: HostPort, transport: Transport
) -> None:
    prefix = "tcp://" if transport is Transport.RAW else ""
    policy = Policy.read(Access.PROXY, allowed_hosts=[f"{prefix}{one}"])

    assert policy.allows(one, transport)
    assert policy.allows(other, transport) is (one == other)


@given(st.text(max_size=40))
def test_whatever_is_read_as_a_host_is_plain(text: str) -> None:
    try:
        host = canonical_host(text)
    except ValueError:
        return

    assert host.isascii()
    assert not set(host) - set("abcdefghijklmnopqrstuvwxyz0123456789.-_:")


def test_one_private_address_among_public_ones_is_refused() -> None:
    host_port = HostPort("a.example", 443)

    with pytest.raises(Refused) as refusal:
        Policy(Access.OPEN).check_addresses(host_port, ["8.8.8.8", "10.0.0.1"])

    assert refusal.value.reason is Reason.PRIVATE_ADDRESS
    assert "TOOLRUNNER_EGRESS_PRIVATE_HOSTS" in str(refusal.value)
    Policy(Access.OPEN, private=frozenset({host_port})).check_addresses(host_port, ["10.0.0.1"])
