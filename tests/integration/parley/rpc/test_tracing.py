import asyncio
from typing import Any

from google.protobuf.wrappers_pb2 import StringValue
from opentelemetry.trace import SpanKind, get_current_span

from parley.identity import ServiceName
from parley.rpc import connect
from parley.telemetry import start
from support.rpc.echo_service import ECHO, Echo, EchoStub, Identities, ServeEcho, text


async def test_a_call_joins_its_callers_trace(serve_echo: ServeEcho) -> None:
    async with asyncio.timeout(10), serve_echo() as served:
        tracer = served.telemetry.telemetry.tracer
        with tracer.start_as_current_span("outer") as outer:
            await served.echo.say(text("x"))
        [server, _] = served.telemetry.spans()
    assert server.name == f"{ECHO}/Say"
    assert server.kind is SpanKind.SERVER
    assert server.parent is not None
    assert server.parent.span_id == outer.get_span_context().span_id
    assert dict(server.attributes or {}) == {
        "rpc.system.name": "grpc",
        "rpc.method": f"{ECHO}/Say",
        "rpc.response.status_code": "OK",
    }


async def test_a_call_without_a_trace_begins_one(serve_echo: ServeEcho) -> None:
    async with asyncio.timeout(10), serve_echo() as served:
        await served.echo.say(text("x"))
        [server] = served.telemetry.spans()
    assert server.parent is None


async def test_a_trace_nobody_records_keeps_its_id_on_the_way(
    serve_echo: ServeEcho, identities: Identities
) -> None:
    seen: list[int] = []

    async def note(request: StringValue, context: Any) -> StringValue:
        seen.append(get_current_span().get_span_context().trace_id)
        if request.value == "first":
            await echo.say(text("second"))
        return request

    async with (
        asyncio.timeout(10),
        serve_echo(Echo(say=note)) as served,
        start("gateway", instance="1") as unrecorded,
        connect(
            served.server.address,
            audience=ServiceName.CHATD,
            signer=identities.signer,
            telemetry=unrecorded,
        ) as channel,
    ):
        echo = EchoStub(channel)
        with unrecorded.tracer.start_as_current_span("outer") as outer:
            await echo.say(text("first"))
        assert served.telemetry.spans() == ()
    trace_id = outer.get_span_context().trace_id
    assert trace_id != 0
    assert seen == [trace_id, trace_id]


async def test_calls_are_counted_and_timed(serve_echo: ServeEcho) -> None:
    async with asyncio.timeout(10), serve_echo() as served:
        await served.echo.say(text("x"))
        await served.echo.say(text("x"))
        shown = served.telemetry.telemetry.metrics_text()
    labels = f'rpc_method="{ECHO}/Say",rpc_response_status_code="OK"'
    assert f"rpc_server_requests_total{{{labels}}} 2.0" in shown
    assert f"rpc_server_call_duration_seconds_count{{{labels}}} 2.0" in shown
