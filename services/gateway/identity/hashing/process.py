"""A hashing process as the gateway uses it: started at its first use and again after its death.

It is a process and no thread, because a thread of low priority that waits for a processor while it
holds the interpreter's lock would keep all requests of the gateway waiting.
"""

import logging
import select
import subprocess
import sys
import threading
from typing import Final

import msgspec

from gateway.identity.hashing.hasher import Answer, Request

#: A process that dies of one request is not started for it again and again.
ATTEMPTS_MAX: Final = 2
#: One that does not answer for so long, even with the least of a busy processor, is stuck.
ANSWER_S: Final = 60.0
PROGRAM: Final = (sys.executable, "-I", "-m", "gateway.identity.hashing.program")

_ANSWERS: Final = msgspec.json.Decoder[Answer](Answer)

logger = logging.getLogger(__name__)


class HashingFailed(Exception):
    """No process could hash, or it was closed."""


class HashingProcess:
    """Hashes in a process of its own; `ask` is for one thread at a time, `close` for any."""

    def __init__(self, *, answer_s: float = ANSWER_S) -> None:
        self._answer_s = answer_s
        self._child: subprocess.Popen[bytes] | None = None
        self._is_closed = False
        # Held while the process is started, ended or closed, so that none is started after that.
        self._lock = threading.Lock()
        # Held while a thread waits for an answer.
        self._asking = threading.Lock()

    def ask(self, request: Request) -> Answer:
        """Return the answer of the process; blocks the calling thread.

        Raises:
            HashingFailed: No process could answer, or this one is closed.
        """
        line = msgspec.json.encode(request) + b"\n"
        with self._asking:
            for _ in range(ATTEMPTS_MAX):
                child = self._running()
                answer = _exchanged(child, line, self._answer_s)
                if answer.endswith(b"\n"):
                    decoded: Answer = _ANSWERS.decode(answer)
                    return decoded
                self._end()
                if not self._is_closed:
                    logger.warning(
                        "a hashing process died or was stuck", extra={"exit_code": child.returncode}
                    )
        raise HashingFailed

    def close(self) -> None:
        """End the process; what it is asked now fails."""
        with self._lock:
            self._is_closed = True
            if self._child is not None:
                self._child.kill()
        # A thread that waits for an answer reads the end of it now, and does the rest itself.
        if self._asking.acquire(blocking=False):
            try:
                self._end()
            finally:
                self._asking.release()

    def _running(self) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self._is_closed:
                raise HashingFailed
            if self._child is None:
                try:
                    # In a session of its own, without the environment, which has secrets.
                    self._child = subprocess.Popen(
                        PROGRAM,
                        env={},
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL,
                        start_new_session=True,
                    )
                except OSError as error:
                    logger.warning("no hashing process can be started: %s", error)
                    raise HashingFailed from error
            return self._child

    def _end(self) -> None:
        """End the process and close its pipes; for the thread that asks it."""
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait()
            _release(child)


def _exchanged(child: "subprocess.Popen[bytes]", line: bytes, answer_s: float) -> bytes:
    """Send a request and return the answer; one without its end if the process died or is stuck."""
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(line)
        child.stdin.flush()
        answered = select.poll()
        answered.register(child.stdout, select.POLLIN)
        return child.stdout.readline() if answered.poll(answer_s * 1000) else b""
    except BrokenPipeError:
        return b""


def _release(child: "subprocess.Popen[bytes]") -> None:
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                logger.debug("a hashing process died before it read a request")
