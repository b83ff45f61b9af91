"""A program that behaves like a Parley service from outside: health, readiness, and misbehaviour.

Run as `python fake_service.py SERVICE [OPTION ...]`. It listens where the settings of SERVICE
say and ends on SIGTERM; SIGUSR1 makes it crash, and options make it misbehave in other ways.
"""

import argparse
import asyncio
import os
import signal
import subprocess
import sys

CRASH_EXIT_CODE = 7


async def serve_health(address: str) -> object:
    import grpc
    from grpc_health.v1 import (
        health,
        health_pb2,
        health_pb2_grpc,
    )

    server = grpc.aio.server()
    servicer = health.aio.HealthServicer()
    await servicer.set("", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    server.add_insecure_port(address)
    await server.start()
    return server


async def answer_ok(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readline()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    writer.close()


async def listen_tcp(where: str) -> object:
    host, _, port = where.rpartition(":")
    return await asyncio.start_server(answer_ok, host, int(port))


async def main(options: argparse.Namespace) -> None:
    prefix = options.service.upper().replace("-", "_")
    environment = os.environ  # noqa: TID251 (this is a program of its own)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, lambda: os._exit(CRASH_EXIT_CODE))
    loop.add_signal_handler(signal.SIGTERM, (lambda: None) if options.ignore_term else stopping.set)
    if options.orphan:
        # A process in a session of its own, as a toolrunner's commands are.
        subprocess.Popen(["sleep", "600"], start_new_session=True)  # noqa: ASYNC220
    listeners = []
    if options.never_ready:
        await stopping.wait()
    elif options.service == "mcp-demo":
        listeners.append(await listen_tcp(environment[f"{prefix}_LISTEN"]))
    else:
        listeners.append(await serve_health(environment[f"{prefix}_LISTEN"]))
    if options.service == "gateway":
        listeners.append(await listen_tcp(environment["GATEWAY_HTTP_LISTEN"]))
    print(f"{options.service} listens", flush=True)
    await stopping.wait()
    # Leave at once: a fake has nothing to put in order.
    os._exit(0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("service")
    parser.add_argument("--ignore-term", action="store_true")
    parser.add_argument("--say")
    parser.add_argument("--exit-with", type=int)
    parser.add_argument("--orphan", action="store_true")
    parser.add_argument("--never-ready", action="store_true")
    parsed = parser.parse_args()
    if parsed.exit_with is not None:
        print(parsed.say, file=sys.stderr, flush=True)
        sys.exit(parsed.exit_with)
    asyncio.run(main(parsed))
