"""Which hosts the proxy records as reached, and when."""

from pathlib import Path

from support.toolrunner.egress_stage import WORKSPACE, staged
from toolrunner.egress.domain.reached import ReachedHost
from toolrunner.egress.reached_hosts import ReachedHosts

SITE = ReachedHost("plain.example")
PLAIN = b"GET http://plain.example/x HTTP/1.1\r\nHost: plain.example\r\n\r\n"
TREE = "first"


async def test_a_host_that_cannot_be_connected_counts_and_one_that_is_refused_does_not(
    tmp_path: Path,
) -> None:
    async with (
        ReachedHosts(lambda _: tmp_path) as reached,
        staged(tmp_path, answers={"plain.example": [()]}, reached=reached) as stage,
    ):
        # Names, addresses and certificates of a host bring content in, too.
        await stage.ask(PLAIN.replace(b"plain.", b"other."))
        refused = await reached.since(WORKSPACE, TREE)
        failed = await stage.ask(PLAIN)
        assert b"plain.example has no address" in failed
        assert [refused, await reached.since(WORKSPACE, TREE)] == [(), (SITE,)]
