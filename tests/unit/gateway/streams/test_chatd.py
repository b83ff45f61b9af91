import grpc
import pytest

from gateway.http.problems.errors import UpstreamProblem
from gateway.streams.chatd_client import ChatdClient, Stubs
from parley.identity import Role, User, UserId
from parley.rpc import Address, Channels, ranked

ADDRESSES = tuple(Address.parse(f"unix:/run/chatd-{number}.sock") for number in range(3))
USER = User(UserId("0191d1f0-0000-7000-8000-000000000001"), Role.MEMBER)


def refusal(code: grpc.StatusCode) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata())


class Ranked:
    """Ways to processes of which all live, and no stream leads to any."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    def preferred(self, key: str) -> tuple[Address, ...]:
        return ranked(key, self._channels.addresses)

    def tunnel_to(self, address: Address) -> None:
        return None


async def asked(*refusals: grpc.StatusCode) -> int:
    """Return how many processes were asked until one answered."""
    channels = Channels(ADDRESSES, lambda address: grpc.aio.insecure_channel(str(address)))
    seen: list[Stubs] = []

    async def question(stubs: Stubs) -> str:
        seen.append(stubs)
        if len(seen) <= len(refusals):
            raise refusal(refusals[len(seen) - 1])
        return "yes"

    try:
        assert (await ChatdClient(channels, Ranked(channels)).ask(USER, "chat", question))[
            0
        ] == "yes"
    finally:
        await channels.close()
    return len(set(map(id, seen)))


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNAUTHENTICATED])
async def test_another_process_is_asked_when_one_cannot(code: grpc.StatusCode) -> None:
    assert await asked(code, code) == 3


async def test_a_refusal_of_the_request_is_final() -> None:
    with pytest.raises(UpstreamProblem):
        await asked(grpc.StatusCode.NOT_FOUND)
