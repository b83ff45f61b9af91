"""The hashing process: answers requests on standard input, one JSON document in a line.

It ends with its standard input, so it never outlives the gateway that started it.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from gateway.identity.hashing.hasher import Request, answer

#: The lowest: with the processors busy, it gets about a hundredth of what an ordinary one gets.
NICENESS: Final = 19
#: Linux may give each session an equal share of the processors; priorities count within it only.
AUTOGROUP: Final = Path("/proc/self/autogroup")
#: A third of the share of another session: with the lowest, a sign-in on a machine with many busy
#: sessions would take minutes.
SESSION_NICENESS: Final = 5


def main() -> None:
    """Answer until the input ends, with low priority once everything is loaded."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, max(own, NICENESS))
    with suppress(OSError):
        # The process has a session of its own. Not every kernel has this file.
        AUTOGROUP.write_text(str(SESSION_NICENESS), encoding="ascii")
    decoder = msgspec.json.Decoder[Request](Request)
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(msgspec.json.encode(answer(decoder.decode(line))) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
