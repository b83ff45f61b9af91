"""A node whose workspaces hide memory in buffers of the kernel, without control groups."""

import shlex
from dataclasses import replace
from pathlib import Path

from support.toolrunner import attacks
from support.toolrunner.jail import PYTHON
from support.toolrunner.node import House, connected, node

MIB = 1024**2
MEMORY_MIB = 192
WITHIN_MS = 20_000


async def buffered(directory: Path, level: str, kind: str) -> tuple[str, str]:
    """Run an attack; return what the exit of the command says was exceeded, and a neighbour."""
    house = replace(House.build(directory), sandbox_level=level)
    house.settings["TOOLRUNNER_WORKSPACE_MEMORY_BYTES"] = str(MEMORY_MIB * MIB)
    house.settings["TOOLRUNNER_CONTROL_GROUPS"] = "false"
    words = (PYTHON, "-I", "-S", "-c", attacks.BUFFERING, kind)
    async with node(house), connected(house) as client:
        started = await client.start(f"exec {shlex.join(words)}")
        waited = await client.wait(started.process.process_id, max_wait_ms=WITHIN_MS)
        client.context.workspace_id = client.new_id()
        beside = await client.run("echo fine")
    return waited.process.exit.exceeded, beside.output.text
