"""Ways past the proxy that are known from other proxies, each tried on real sockets (row E13)."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from support.toolrunner.egress_attacks import Attempt, Scene, attempts
from support.toolrunner.egress_stage import OTHER_PUBLIC, PATIENCE_S, PUBLIC, Origin, Stage, staged
from toolrunner.egress import Access, Grant, HostPattern, Limits, SecretValue

VALUE = b"the-secret-that-must-not-leave"
FORBIDDEN = "93.184.216.99"
LIMITS = Limits(head_s=1.0, connect_s=1.0, idle_s=1.0, total_s=5.0)
#: Names that the policy allows, and where they lead.
ANSWERS: dict[str, list[tuple[str, ...]]] = {
    "rebound.example": [("127.0.0.1",)],
    "mixed.example": [(PUBLIC, "127.0.0.1")],
    "flipping.example": [("127.0.0.1",), (PUBLIC,)],
    "six.example": [("::1",)],
    "mapped.example": [("::ffff:127.0.0.1",)],
    "translated.example": [("64:ff9b::7f00:1",)],
    "metadata.example": [("169.254.169.254",)],
    "private.example": [("10.0.0.1",)],
    "zero.example": [("0.0.0.0",)],
    "many.example": [("224.0.0.1",)],
    "azure.example": [("168.63.129.16",)],
    "zone.example": [("fe80::1%lo",)],
    "forbidden.test": [(FORBIDDEN,)],
}
ALLOWED = ("secure.example", "plain.example", *(name for name in ANSWERS if "test" not in name))
SCENE = Scene(
    secured="secure.example:443",
    plain="plain.example:80",
    denied="forbidden.test",
    inside_port=0,
    names=tuple(name for name in ANSWERS if name != "forbidden.test"),
)


async def attempt(stage: Stage, each: Attempt) -> bytes:
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await stage.connect()
        try:
            writer.write(each.said)
            answer = b""
            if each.then:
                answer = await reader.read(4096)
                if answer.startswith(b"HTTP/1.1 200 Connection established"):
                    writer.write(each.then)
            if writer.can_write_eof():
                writer.write_eof()
            return answer + await reader.read()
        except OSError:
            return b""
        finally:
            writer.close()


def leaked(stage: Stage, forbidden: Origin, answer: bytes) -> bool:
    """Tell whether anything came where it must not, or came back from there."""
    is_inside = any(
        address != PUBLIC and address != OTHER_PUBLIC for address, _ in stage.network.connected
    )
    strange = [each for each in stage.plain.requests if b"Host: plain.example\r\n" not in each]
    return bool(
        is_inside
        or stage.inside.connections
        or forbidden.connections
        or strange
        or stage.secured.requests
        or VALUE in answer
        or VALUE in b"".join(stage.plain.requests)
        or (answer.startswith(b"HTTP/1.1 200 OK"))
    )


@pytest.mark.parametrize("access", [Access.PROXY, Access.OPEN])
async def test_no_known_way_leads_past_the_proxy(tmp_path: Path, access: Access) -> None:
    grants = (Grant("api", (HostPattern.parse("secure.example"),)),)
    async with (
        staged(
            tmp_path,
            access=access,
            allowed=ALLOWED,
            denied=("forbidden.test", "*.forbidden.test"),
            grants=grants,
            values={"api": SecretValue("", VALUE)},
            answers={name: [*answers] for name, answers in ANSWERS.items()},
            limits=LIMITS,
        ) as stage,
        Origin().running() as forbidden,
    ):
        stage.network.routes = {
            **stage.network.routes,
            **{(FORBIDDEN, port): forbidden.port for port in (80, 443, stage.inside.port)},
        }
        tried = [each.shown() for each in attempts(replace(SCENE, inside_port=stage.inside.port))]
        succeeded = [
            each.name for each in tried if leaked(stage, forbidden, await attempt(stage, each))
        ]
        noted = len(stage.audit.access_records)

    print(f"E13 by {access}: attempts {len(tried)}, successes {len(succeeded)}, noted {noted}")
    assert succeeded == []
    assert noted >= len(tried) * 0.99


async def test_what_the_attacks_build_on_does_pass(tmp_path: Path) -> None:
    """Without this, a proxy that lets nothing through would stand every attack."""
    grants = (Grant("api", (HostPattern.parse("secure.example"),)),)
    async with staged(
        tmp_path, grants=grants, values={"api": SecretValue("", VALUE)}, limits=LIMITS
    ) as stage:
        plain = Attempt(
            "plain", b"GET http://plain.example/ HTTP/1.1\r\nHost: plain.example\r\n\r\n"
        )
        secured = Attempt(
            "secured", b"GET /https/secure.example/ HTTP/1.1\r\nHost: localhost:3128\r\n\r\n"
        )

        assert (await attempt(stage, plain)).startswith(b"HTTP/1.1 200 OK")
        assert (await attempt(stage, secured)).startswith(b"HTTP/1.1 200 OK")
        assert VALUE in stage.secured.requests[0]
