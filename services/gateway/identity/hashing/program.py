"""The hashing process: answers requests on standard input, one JSON document in a line.

It ends with its standard input, so it never outlives the gateway that started it.
"""

import os
import sys
from typing import Final

import msgspec

from gateway.identity.hashing.hasher import Request, answer

#: The lowest: with the processors busy, it gets about a hundredth of what an ordinary one gets.
NICENESS: Final = 19


def main() -> None:
    """Answer until the input ends, with low priority once everything is loaded."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, max(own, NICENESS))
    decoder = msgspec.json.Decoder[Request](Request)
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(msgspec.json.encode(answer(decoder.decode(line))) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
