"""What resources and authorization servers say about themselves, and what is believed of it."""

import pytest

from mcpgateway.oauth.domain.metadata import (
    Challenge,
    canonical,
    covers,
    is_answer_of,
    is_same_issuer,
    merged_scopes,
    read_challenge,
    resource_metadata_urls,
    server_metadata_urls,
)

URL = "https://mcp.example/a/mcp"


@pytest.mark.parametrize(
    ("header", "read"),
    [
        ("", Challenge()),
        ("Bearer", Challenge()),
        (
            'Bearer resource_metadata="https://x/y", scope="a b a"',
            Challenge("https://x/y", ("a", "b")),
        ),
        (
            'Bearer error="insufficient_scope",scope=more',
            Challenge("", ("more",), "insufficient_scope"),
        ),
        # The name of another parameter may end like this one.
        ('Bearer xscope="no", scope="yes"', Challenge("", ("yes",))),
        ('Basic realm="scope=no"', Challenge()),
    ],
)
def test_a_challenge_is_read(header: str, read: Challenge) -> None:
    assert read_challenge(header) == read


@pytest.mark.parametrize(
    ("resource", "is_covered"),
    [
        (URL, True),
        ("https://mcp.example/a", True),
        ("https://mcp.example", True),
        ("https://mcp.example:443/", True),
        ("https://mcp.example/a/mc", False),
        ("https://mcp.example/a/mcp/below", False),
        ("https://other.example/a/mcp", False),
        ("http://mcp.example/a/mcp", False),
        ("https://mcp.example:8443/a/mcp", False),
        ("https://mcp.example/a/mcp#x", False),
        ("https://[", False),
        ("", False),
    ],
)
def test_a_resource_covers_only_what_is_below_it(resource: str, is_covered: bool) -> None:
    assert covers(resource, URL) is is_covered


def test_issuers_are_compared_as_texts_but_for_the_slash_of_a_root() -> None:
    assert is_same_issuer("https://a.example", "https://a.example/")
    assert not is_same_issuer("https://a.example/x", "https://a.example/x/")
    assert not is_same_issuer("https://A.example", "https://a.example")
    # Of an issuer that nobody named, no answer can be told apart.
    assert not is_answer_of("", sends_issuer=False, issuer="https://a.example")


def test_the_identifier_of_a_resource_has_no_fragment_and_no_empty_path() -> None:
    assert canonical("HTTPS://Mcp.Example/#x") == "https://mcp.example"
    assert canonical("https://mcp.example/mcp/?t=1") == "https://mcp.example/mcp/?t=1"


def test_scopes_are_merged_in_order_without_malformed_ones() -> None:
    assert merged_scopes(("b", "a"), ("a", 'quo"te', "c\nd", "c")) == ("b", "a", "c")


def test_metadata_are_looked_for_in_the_order_of_the_specifications() -> None:
    assert resource_metadata_urls(URL, Challenge("https://x.example/m")) == (
        "https://x.example/m",
        "https://mcp.example/.well-known/oauth-protected-resource/a/mcp",
        "https://mcp.example/.well-known/oauth-protected-resource",
    )
    assert resource_metadata_urls("https://mcp.example/", Challenge()) == (
        "https://mcp.example/.well-known/oauth-protected-resource",
    )
    assert server_metadata_urls("https://a.example/tenant/") == (
        "https://a.example/.well-known/oauth-authorization-server/tenant",
        "https://a.example/.well-known/openid-configuration/tenant",
        "https://a.example/tenant/.well-known/openid-configuration",
    )
    assert server_metadata_urls("https://a.example") == (
        "https://a.example/.well-known/oauth-authorization-server",
        "https://a.example/.well-known/openid-configuration",
    )
