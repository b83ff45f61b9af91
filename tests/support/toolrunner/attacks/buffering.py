"""Runs inside of a sandbox and puts memory where no process has it: buffers of the kernel.

Gets which kind: `sockets`, `left` by senders that are gone, `streams` over TCP, or `pipes`.
"""

import os
import resource
import signal
import socket
import sys
from contextlib import suppress

KIND = sys.argv[1]
PROCESSES, PAIRS, PIPES = 8, 400, 3500
held: list[object] = []


def fill(sender: socket.socket, piece: bytes) -> None:
    sender.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            sender.send(piece)


def sockets() -> None:
    for _ in range(PAIRS):
        pair = socket.socketpair()
        fill(pair[0], bytes(32 * 1024))
        held.append(pair)


def left() -> None:
    for _ in range(PAIRS):
        sender, receiver = socket.socketpair()
        fill(sender, b"x")
        sender.close()
        held.append(receiver)


def streams() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        for _ in range(PAIRS // 8):
            sender = socket.create_connection(server.getsockname())
            fill(sender, bytes(256 * 1024))
            held.append((sender, server.accept()))


def pipes() -> None:
    # A command starts with the soft limit of the service, and may raise it by itself.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    for _ in range(PIPES):
        _, writing = os.pipe()
        os.set_blocking(writing, False)
        with suppress(BlockingIOError):
            while True:
                os.write(writing, bytes(4096))
        os.close(writing)


for _ in range(PROCESSES):
    if os.fork() == 0:
        with suppress(OSError):
            globals()[KIND]()
        signal.pause()
os.wait()
