"""Network policies as people give them: what is no host is refused where it stands."""

import pytest

from chatd.primitives.domain.errors import InvalidRequest
from chatd.workspaces.rpc.convert_templates import network_of
from parley.api.workspace.v1 import sandbox_pb2
from toolrunner.egress.domain.hosts import HostPattern

HOSTS = (
    "example.org",
    "EXAMPLE.org:8443",
    "*.example.org",
    "*.example.org:80",
    "tcp://db.example.org:5432",
    "10.0.0.7",
    "[2001:db8::1]:443",
    "localhost",
)
NO_HOSTS = (
    "",
    "a b",
    "https://example.org",
    "example.org/path",
    "*",
    "*.org",
    "example.org:0",
    "example.org:123456",
    "tcp://example.org",
    "-a.example.org",
    "exämple.org",
)


@pytest.mark.parametrize("host", HOSTS)
def test_what_a_node_takes_as_a_host_is_accepted(host: str) -> None:
    HostPattern.parse(host)
    given = sandbox_pb2.NetworkPolicy(allowed_hosts=[host], denied_hosts=[host])
    assert network_of(given).allowed_hosts == (host,)


@pytest.mark.parametrize("host", NO_HOSTS)
def test_what_is_no_host_is_refused_where_it_stands(host: str) -> None:
    given = sandbox_pb2.NetworkPolicy(allowed_hosts=["example.org", host], denied_hosts=[host])
    with pytest.raises(InvalidRequest) as refused:
        network_of(given)
    assert [field for field, _ in refused.value.faults] == [
        "template.network.allowed_hosts[1]",
        "template.network.denied_hosts[0]",
    ]
