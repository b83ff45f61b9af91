"""The program that reduces one large line: from standard input to standard output."""

import resource
import sys
from typing import Final

from chatd.workspace_servers.domain.large_lines import reduced
from parley.foreign_json import ShallowJson

#: Many times what a line of the greatest length needs.
MEMORY_BYTES_MAX: Final = 2 * 1024**3
CPU_S_MAX: Final = 20
#: Deeper than any schema may be, and less deep than a line that cannot be decoded.
DEPTH_MAX: Final = 128


def readable(line: bytes) -> bytes:
    """Return a line with what is read of its message, without values that are too deep."""
    return reduced(line) or reduced(ShallowJson(DEPTH_MAX).add(line))


def main() -> None:
    """Reduce the line."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S_MAX, CPU_S_MAX))
    sys.stdout.buffer.write(readable(sys.stdin.buffer.read()))


if __name__ == "__main__":
    main()
