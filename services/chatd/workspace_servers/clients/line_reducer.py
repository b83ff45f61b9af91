"""Reduces large lines of servers in programs of their own.

A thread would not do: the interpreter runs nothing else while a line is decoded, so that all turns
of the process would wait for it.
"""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE
from typing import Final

from chatd.workspace_servers.domain.state import ServerFailed

#: Programs at once; other lines wait.
AT_ONCE_MAX: Final = 2
REDUCING_S_MAX: Final = 30.0
PROGRAM: Final = (sys.executable, "-I", "-m", "chatd.workspace_servers.clients.reduce_line")
TOO_COMPLEX: Final = "it sent a line that takes too much time or memory to decode"


class ProcessLineReducer:
    """Reduces each line in a program of its own, which ends with it.

    Args:
        program: The command.
    """

    def __init__(self, program: tuple[str, ...] = PROGRAM) -> None:
        self._program = program
        self._room = asyncio.Semaphore(AT_ONCE_MAX)

    async def reduced(self, line: bytes) -> bytes:
        """Return a line with few values; empty if it is not understood.

        Raises:
            ServerFailed: It takes too much time or memory.
        """
        async with self._room:
            # Without the variables of this process: they hold secrets.
            child = await asyncio.create_subprocess_exec(
                *self._program, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={}
            )
            try:
                async with asyncio.timeout(REDUCING_S_MAX):
                    reduced, _ = await child.communicate(line)
            except TimeoutError:
                raise ServerFailed(TOO_COMPLEX) from None
            finally:
                if child.returncode is None:
                    child.kill()
                    await child.wait()
        if child.returncode != 0:
            raise ServerFailed(TOO_COMPLEX)
        return reduced
