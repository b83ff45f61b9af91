"""Measures a unary call through `parley.rpc` with everything on against bare grpc.aio.

Run it with `python bench/rpc.py`. One server process serves the same method both ways on two UNIX
sockets; one client process alternates between them in short rounds, so that both see the same
machine. It prints one JSON object; `cost_ratio` compares the processor time that both processes
spend on one call, `latency_ratio` the median of one call at a time, `throughput_ratio` calls per
second with many in flight. Each ratio is the median over the rounds.
"""

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import uvloop
from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.wrappers_pb2 import StringValue, UInt64Value

from parley.clock import SystemClock
from parley.identity import (
    CallerRule,
    Guard,
    InMemoryRevocations,
    Role,
    ServiceName,
    Signer,
    SigningKey,
    Trust,
    TrustFile,
    User,
    UserId,
)
from parley.rpc import Address, Registration, acting_for, connect, serve
from parley.telemetry import start

SERVICE = "parley.bench.v1.EchoService"
USER = User(UserId("u-1"), Role.MEMBER)
WARM_UP = 300


def describe(service: str) -> Any:
    """Return the service's descriptor: one method that answers its request, one for the clock."""
    package, _, name = service.rpartition(".")
    file = FileDescriptorProto(
        name="parley/bench/echo.proto",
        package=package,
        syntax="proto3",
        dependency=["google/protobuf/wrappers.proto"],
    )
    declared = file.service.add(name=name)
    text, number = ".google.protobuf.StringValue", ".google.protobuf.UInt64Value"
    declared.method.add(name="Say", input_type=text, output_type=text)
    declared.method.add(name="Spent", input_type=text, output_type=number)
    return (
        descriptor_pool.Default().AddSerializedFile(file.SerializeToString()).services_by_name[name]
    )


class Echo:
    """Answers what it is told."""

    async def say(self, request: StringValue, context: Any) -> StringValue:
        """Answer with the request."""
        return request

    async def spent(self, request: StringValue, context: Any) -> UInt64Value:
        """Answer with this process's processor time in microseconds."""
        return UInt64Value(value=processor_time_us())


def add_echo(servicer: Any, server: Any) -> None:
    """Do what generated code does."""
    handlers = {
        "Say": grpc.unary_unary_rpc_method_handler(
            servicer.say, StringValue.FromString, StringValue.SerializeToString
        ),
        "Spent": grpc.unary_unary_rpc_method_handler(
            servicer.spent, StringValue.FromString, UInt64Value.SerializeToString
        ),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    server.add_registered_method_handlers(SERVICE, handlers)


class Stub:
    """What generated code would make of the service."""

    def __init__(self, channel: Any) -> None:
        self.say = channel.unary_unary(
            f"/{SERVICE}/Say",
            request_serializer=StringValue.SerializeToString,
            response_deserializer=StringValue.FromString,
            _registered_method=True,
        )
        self.spent = channel.unary_unary(
            f"/{SERVICE}/Spent",
            request_serializer=StringValue.SerializeToString,
            response_deserializer=UInt64Value.FromString,
            _registered_method=True,
        )


def processor_time_us() -> int:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return round((used.ru_utime + used.ru_stime) * 1e6)


async def run_server(home: Path) -> None:
    """Serve both ways until standard input ends."""
    clock = SystemClock()
    rule = CallerRule(for_users=frozenset({ServiceName.GATEWAY}))
    trust = Trust(home / "trust.json", clock)
    guard = Guard(
        ServiceName.CHATD, trust, InMemoryRevocations(()), clock, False, rules=lambda method: rule
    )
    registration = Registration(describe(SERVICE), add_echo, Echo())
    bare = grpc.aio.server()
    add_echo(Echo(), bare)
    bare.add_insecure_port(f"unix:{home}/bare.sock")
    await bare.start()
    async with (
        start("chatd", instance="bench") as telemetry,
        serve(
            Address.parse(f"unix:{home}/parley.sock"),
            [registration],
            guard=guard,
            errors={},
            domain="bench.parley",
            telemetry=telemetry,
        ),
    ):
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        await bare.stop(None)


async def one_at_a_time(stub: Stub, calls: int) -> list[float]:
    request = StringValue(value="x" * 100)
    taken = []
    for _ in range(calls):
        started_at = time.perf_counter()
        await stub.say(request, timeout=10)
        taken.append(time.perf_counter() - started_at)
    return taken


async def many_at_once(stub: Stub, calls: int, in_flight: int) -> float:
    request = StringValue(value="x" * 100)

    async def some() -> None:
        for _ in range(calls // in_flight):
            await stub.say(request, timeout=10)

    started_at = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(in_flight):
            tasks.create_task(some())
    return calls / (time.perf_counter() - started_at)


async def measure(stub: Stub, calls: int, in_flight: int) -> dict[str, float]:
    """Return one round's figures."""
    spent_before = (await stub.spent(StringValue())).value + processor_time_us()
    taken = sorted(await one_at_a_time(stub, calls))
    per_second = await many_at_once(stub, calls, in_flight)
    spent_us = (await stub.spent(StringValue())).value + processor_time_us() - spent_before
    return {
        "calls_per_s": per_second,
        "latency_p50_us": taken[len(taken) // 2] * 1e6,
        "latency_p99_us": taken[len(taken) * 99 // 100] * 1e6,
        "processor_us_per_call": spent_us / (2 * calls),
    }


async def run_client(home: Path, rounds: int, calls: int, in_flight: int) -> dict[str, Any]:
    """Measure both ways by turns."""
    clock = SystemClock()
    describe(SERVICE)
    signer = Signer(ServiceName.GATEWAY, SigningKey.load(home / "key.pem"), clock)
    async with start("gateway", instance="bench") as telemetry:
        address = Address.parse(f"unix:{home}/parley.sock")
        parley = connect(address, audience=ServiceName.CHATD, signer=signer, telemetry=telemetry)
        bare = grpc.aio.insecure_channel(f"unix:{home}/bare.sock")
        figures: dict[str, list[dict[str, float]]] = {"bare": [], "parley": []}
        # A caller's own work is always inside a trace, so the trace context travels in every call.
        with acting_for(USER), telemetry.tracer.start_as_current_span("bench"):
            ways = {"bare": Stub(bare), "parley": Stub(parley)}
            for stub in ways.values():
                await one_at_a_time(stub, WARM_UP)
            for _ in range(rounds):
                for way, stub in ways.items():
                    figures[way].append(await measure(stub, calls, in_flight))
        await parley.close()
        await bare.close()
    return summarise(figures)


def summarise(figures: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    def ratio(name: str, divide: Callable[[float, float], float]) -> float:
        pairs = zip(figures["parley"], figures["bare"], strict=True)
        return round(statistics.median(divide(ours[name], bare[name]) for ours, bare in pairs), 3)

    def medians(rounds: list[dict[str, float]]) -> dict[str, float]:
        return {name: round(statistics.median(r[name] for r in rounds), 1) for name in rounds[0]}

    return {
        "bench": "rpc",
        "bare": medians(figures["bare"]),
        "parley": medians(figures["parley"]),
        "cost_ratio": ratio("processor_us_per_call", lambda ours, bare: ours / bare),
        "latency_ratio": ratio("latency_p50_us", lambda ours, bare: ours / bare),
        "throughput_ratio": ratio("calls_per_s", lambda ours, bare: bare / ours),
        "aim": 1.3,
    }


def run_both(arguments: argparse.Namespace) -> dict[str, Any]:
    """Start the two processes in a directory of their own and return what the client found."""
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        key = SigningKey.generate()
        key.save(home / "key.pem")
        TrustFile(home / "trust.json").add_key(ServiceName.GATEWAY, key)
        command = [sys.executable, __file__, "--home", directory]
        with subprocess.Popen(
            [*command, "--role", "server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as server:
            assert server.stdout is not None
            server.stdout.readline()
            sizes = ["--rounds", str(arguments.rounds), "--calls", str(arguments.calls)]
            client = subprocess.run(
                [*command, "--role", "client", *sizes, "--in-flight", str(arguments.in_flight)],
                stdout=subprocess.PIPE,
                check=True,
            )
            server.communicate()
    found: dict[str, Any] = json.loads(client.stdout)
    return {**found, "cores": os.cpu_count(), "rounds": arguments.rounds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--role", choices=("server", "client"))
    parser.add_argument("--home", type=Path)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--calls", type=int, default=96)
    parser.add_argument("--in-flight", type=int, default=32)
    arguments = parser.parse_args()
    match arguments.role:
        case "server":
            uvloop.run(run_server(arguments.home))
        case "client":
            sizes = (arguments.rounds, arguments.calls, arguments.in_flight)
            print(json.dumps(uvloop.run(run_client(arguments.home, *sizes))))
        case _:
            print(json.dumps(run_both(arguments), indent=2))


if __name__ == "__main__":
    main()
