"""What the node's own git is led by, when it makes a workspace of a private repository."""

import pytest

from toolrunner.egress import Delivery, Grant, HostPattern, HostPort
from toolrunner.workspaces.egress import fetch_grant, repository_place

GIT = Grant("deploy", (HostPattern.parse("*.example.org"),), Delivery.GIT)
API = Grant("api", (HostPattern.parse("git.example.org"),))
VARIABLE = Grant("key", (), Delivery.ENVIRONMENT, variable="KEY")


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://git.example.org/a/b.git", HostPort("git.example.org", 443)),
        ("https://GIT.example.org:8443/a", HostPort("git.example.org", 8443)),
        ("git@git.example.org:a/b.git", HostPort("git.example.org", 443)),
        ("ssh://git@git.example.org/a/b.git", None),
        ("http://git.example.org/a/b.git", None),
        ("https://ada:word@git.example.org/a", None),
        ("file:///srv/https://git.example.org/", None),
        ("https://git.example.org.:443/a", None),
        ("/srv/git", None),
    ],
)
def test_a_repository_is_where_its_address_says_if_that_can_be_asked_over_tls(
    url: str, place: HostPort | None
) -> None:
    assert repository_place(url) == place


@pytest.mark.parametrize(
    ("grants", "place", "grant"),
    [
        ((API, GIT, VARIABLE), HostPort("git.example.org", 443), GIT),
        ((API, VARIABLE), HostPort("git.example.org", 443), API),
        ((VARIABLE,), HostPort("git.example.org", 443), None),
        ((API, GIT), HostPort("git.example.org", 8443), None),
        ((API, GIT), HostPort("git.example.com", 443), None),
        ((API, GIT), None, None),
    ],
)
def test_git_gets_the_secret_that_is_granted_for_the_place(
    grants: tuple[Grant, ...], place: HostPort | None, grant: Grant | None
) -> None:
    assert fetch_grant(grants, place) == grant
