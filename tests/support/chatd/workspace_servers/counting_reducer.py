"""A reducer of large lines in the test's own process, behind the port of programs."""

from dataclasses import dataclass, field

from chatd.workspace_servers.clients.reduce_line import readable


@dataclass(slots=True)
class CountingReducer:
    """Reduces lines at once, and keeps how large each was."""

    sizes_bytes: list[int] = field(default_factory=list)

    async def reduced(self, line: bytes) -> bytes:
        """Return a line with few values; empty if it is not understood."""
        self.sizes_bytes.append(len(line))
        return readable(line)
