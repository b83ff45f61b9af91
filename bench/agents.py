"""Figures of the advisor and of agents: what they add, and what working side by side saves.

Run it with `python bench/agents.py`, or name parts: `python bench/agents.py advisor forks`. It
prints one JSON object. The first three start a real stack whose models are served by this process,
so that one clock tells when each request left; ratios are of figures of the same run.

    advisor   from the request of an agent that asks the advisor to its next one, against how long
              the model of the advisor takes; `other_tool_ms` is the same with a tool that only
              reads the database
    spawn     from the request of an agent that starts another to the first request of that one,
              which is answered at once, against the start of a chat over HTTP
    deltas    from the request of an agent that starts another to the first piece of text of that
              one, as a client hears it that follows the parent, and the agent as soon as the
              result of the call names it; `--spawns` times, against the first piece of a new chat
    parallel  ten agents that each take `--work-s` seconds of a model, against one chat that does
              the same in ten turns; a ratio of 10 would be all of it
    forks     fork and merge of a workspace of `--files` files, a tenth of them changed, against
              `cp -a` of the same; both are done in turn and removed, because a file system may
              take longer for new files after many were removed
"""

import argparse
import asyncio
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.append(str(Path(__file__).resolve().parent.parent))

from bench.chats import client_of, is_at_rest, percentiles_ms, stack_of
from bench.machine import print_figures
from bench.nodes import running
from bench.workspaces import QUOTAS, Node, fork_of, local, merge, plain_ms, timed_ms, tree

from parley.api.workspace.v1.host_service_pb2_grpc import WorkspaceHostServiceStub
from parley.api.workspace.v1.process_service_pb2_grpc import ProcessServiceStub
from parley.client import (
    ChatOptions,
    MessageCommitted,
    Parley,
    PartStreamed,
    Role,
    Text,
    ToolResult,
)
from parley.clock import SystemClock
from parley.testing.llm_mock import MockModels
from support.stack.faulty_stack import FaultyStack

ROUNDS = 20
AGENTS = 10
ADVISOR_MS = 300
#: The advisor and the agents that are measured, as words of the grammar of the mock.
ADVISING = f"mock-advising:wait={ADVISOR_MS}ms,deltas=1"
PLAIN = "mock-plain:deltas=1"


def calling(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return a model that calls a tool once."""
    return f"mock-{tool}:tool={tool},args={quote(json.dumps(arguments))},deltas=1"


ASKING = calling("advisor", {"question": "Which way?"})
LISTING = calling("list_agents", {})
SPAWNING = calling("spawn_agent", {"prompt": "repeat after me: here"})
#: Speaks for a second, so that a client that follows it at once hears it while it speaks.
SPEAKING = "mock-speaking:deltas=40,delay=25ms"
STARTING = calling("spawn_agent", {"prompt": "Speak.", "model": SPEAKING, "name": "speaker"})


@dataclass(frozen=True, slots=True)
class Bench:
    """A stack, and the provider of its models.

    Attributes:
        models: Ids of models by their names at the provider.
    """

    stack: FaultyStack
    provider: MockModels
    models: dict[str, str]

    async def turn(self, model: str, text: str = "Begin.") -> str:
        """Run one turn in a new chat, and return its id."""
        body = {
            "content": [{"type": "text", "text": text}],
            "title": "bench",
            "model_id": self.models[model],
        }
        created = await asyncio.to_thread(self.stack.request, "POST", "/chats", body)
        chat_id = str(created["id"])
        await self.stack.until(chat_id, is_at_rest)
        return chat_id

    def requested_at_s(self, *models: str) -> list[float]:
        """Return when the requests with tools to these models came since the last reset."""
        return [
            each.at_s
            for each in self.provider.requests()
            if each.model in models and b'"tools"' in each.body
        ]


@asynccontextmanager
async def bench(*names: str) -> AsyncIterator[Bench]:
    """Give a stack with these models."""
    async with MockModels.serving(clock=SystemClock()) as provider, stack_of(1) as stack:
        base_url = f"{provider.url}/v1"
        body = {"name": "bench", "type": "openai_compatible", "base_url": base_url}

        def ask(path: str, document: object) -> Any:
            return stack.request("POST", path, document)

        made = await asyncio.to_thread(ask, "/providers", body)
        key = {"provider_id": made["id"], "key": "sk-0123456789"}
        await asyncio.to_thread(ask, "/provider-keys", key)
        models = {}
        for name in names:
            model = {"provider_id": made["id"], "name": name}
            models[name] = (await asyncio.to_thread(ask, "/models", model))["id"]
        yield Bench(stack, provider, models)


async def between_requests_ms(found: Bench, model: str) -> float:
    """Return the median time between the two requests of a turn that calls a tool."""
    taken = []
    for _ in range(ROUNDS):
        found.provider.reset()
        await found.turn(model)
        first, second = found.requested_at_s(model)
        taken.append((second - first) * 1000)
    return round(statistics.median(taken), 1)


async def advisor(_options: argparse.Namespace) -> dict[str, Any]:
    async with bench(ASKING, LISTING, ADVISING) as found:
        settings = {"enabled": True, "model_id": found.models[ADVISING]}
        await asyncio.to_thread(found.stack.request, "PUT", "/settings/advisor", settings)
        other_ms = await between_requests_ms(found, LISTING)
        call_ms = await between_requests_ms(found, ASKING)
    return {
        "model_ms": ADVISOR_MS,
        "call_ms": call_ms,
        "overhead_ms": round(call_ms - ADVISOR_MS, 1),
        "ratio": round(call_ms / ADVISOR_MS, 3),
        "other_tool_ms": other_ms,
    }


async def spawn(_options: argparse.Namespace) -> dict[str, Any]:
    spawned_ms, begun_ms = [], []
    async with bench(SPAWNING, PLAIN) as found:
        for _ in range(ROUNDS):
            found.provider.reset()
            began_s = SystemClock().monotonic()
            await found.turn(PLAIN)
            begun_ms.append((found.requested_at_s(PLAIN)[0] - began_s) * 1000)
            found.provider.reset()
            await found.turn(SPAWNING)
            while not (agent := of_agent(found)):
                await found.stack.pause(0.01)
            spawned_ms.append((agent[0] - found.requested_at_s(SPAWNING)[0]) * 1000)
    spawned, begun = statistics.median(spawned_ms), statistics.median(begun_ms)
    return {
        "spawn_to_first_request_ms": round(spawned, 1),
        "chat_to_first_request_ms": round(begun, 1),
        "ratio": round(spawned / begun, 2),
    }


async def deltas(options: argparse.Namespace) -> dict[str, Any]:
    agents_s, chats_s, clock = [], [], SystemClock()
    async with bench(STARTING, SPEAKING) as found, client_of(found.stack) as client:
        for _ in range(options.spawns):
            began_s = clock.monotonic()
            chat = await client.create_chat("Speak.", options=options_of(found, SPEAKING))
            await first_text(client, chat.id)
            chats_s.append(clock.monotonic() - began_s)
            await found.stack.until(chat.id, is_at_rest)
            found.provider.reset()
            chat = await client.create_chat("Begin.", options=options_of(found, STARTING))
            agent_id = await agent_of(client, chat.id)
            await first_text(client, agent_id)
            agents_s.append(clock.monotonic() - found.requested_at_s(STARTING)[0])
            await found.stack.until(agent_id, is_at_rest)
    return {
        "spawns": options.spawns,
        "spawn_to_first_delta_ms": percentiles_ms(agents_s),
        "chat_to_first_delta_ms": percentiles_ms(chats_s),
        "ratio_p50": round(statistics.median(agents_s) / statistics.median(chats_s), 2),
    }


def options_of(found: Bench, model: str) -> ChatOptions:
    return ChatOptions(title="bench", model_id=found.models[model])


async def agent_of(client: Parley, chat_id: str) -> str:
    """Return the id of the agent that a chat starts, as soon as a result names it."""
    async with aclosing(client.follow(chat_id)) as events:
        async for event in events:
            match event:
                case PartStreamed(part=ToolResult() as result):
                    results = [result]
                case MessageCommitted(message=message):
                    results = [part for part in message.content if isinstance(part, ToolResult)]
                case _:
                    continue
            for result in results:
                if agent_id := json.loads(result.result_json or "{}").get("agent_id"):
                    return str(agent_id)
    raise AssertionError("the chat was followed to its end and started no agent")


async def first_text(client: Parley, chat_id: str) -> None:
    """Wait for the first piece of text of a chat's answer."""
    async with aclosing(client.follow(chat_id)) as events:
        async for event in events:
            match event:
                case PartStreamed(role=Role.ASSISTANT, part=Text()):
                    return
                case MessageCommitted(message=message) if message.role is Role.ASSISTANT:
                    return
                case _:
                    continue


def of_agent(found: Bench) -> list[float]:
    """Return when the requests came whose first message is the task of the agent."""
    return [
        each.at_s
        for each in found.provider.requests()
        if b"repeat after me: here" in each.body and b"Begin." not in each.body
    ]


async def parallel(options: argparse.Namespace) -> dict[str, Any]:
    """Time the same work by ten agents and by one chat, both with the scripted model."""
    work = f"count to {round(options.work_s / 0.05)}"
    spawns = [f"call: spawn_agent {json.dumps({'prompt': work})}"] * AGENTS
    script = "\nand ".join(spawns) + "\ncall: wait_agents {}"
    async with stack_of(1) as stack:
        began_s = time.monotonic()
        chat_id = await asyncio.to_thread(stack.create, script)
        await stack.until(chat_id, is_at_rest)
        side_by_side_s = time.monotonic() - began_s
        began_s = time.monotonic()
        chat_id = await asyncio.to_thread(stack.create, work)
        await stack.until(chat_id, is_at_rest)
        for _ in range(AGENTS - 1):
            await asyncio.to_thread(stack.send, chat_id, work)
            await stack.until(chat_id, is_at_rest)
        one_by_one_s = time.monotonic() - began_s
    return {
        "agents": AGENTS,
        "work_s": options.work_s,
        "agents_s": round(side_by_side_s, 2),
        "one_chat_s": round(one_by_one_s, 2),
        "ratio": round(one_by_one_s / side_by_side_s, 2),
    }


async def forks(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="parley-bench-") as name:
        directory = Path(name)
        offered = directory / "offered"
        tree(offered, options.files)
        settings = {"TOOLRUNNER_LOCAL_DIRECTORIES": f"offered={offered}", **QUOTAS}
        async with running(directory, settings) as served:
            host = WorkspaceHostServiceStub(served.channel)
            node = Node(host, ProcessServiceStub(served.channel))
            parent_id = await node.prepare(local(overlay=False))
            forked_ms, plain = [], []
            for _ in range(options.rounds):
                took_ms, fork_id = await timed_ms(lambda: node.prepare(fork_of(parent_id)))
                forked_ms.append(took_ms)
                await node.remove(fork_id)
                plain.append(plain_ms("cp", "-a", str(offered), str(directory / "copy")))
                shutil.rmtree(directory / "copy")
            merged = await merge(node, directory / "data", parent_id, options.files)
    fork_ms, copied_ms = statistics.median(forked_ms), statistics.median(plain)
    return {
        "files": options.files,
        "fork_ms": fork_ms,
        "fork_ms_range": [min(forked_ms), max(forked_ms)],
        "merge": merged,
        "cp_ms": copied_ms,
        "cp_ms_range": [min(plain), max(plain)],
        "fork_over_cp": round(fork_ms / copied_ms, 2),
        "merge_over_cp": round(merged["ms"] / copied_ms, 2),
    }


PARTS: Mapping[str, Callable[[argparse.Namespace], Awaitable[dict[str, Any]]]] = {
    "advisor": advisor,
    "spawn": spawn,
    "deltas": deltas,
    "parallel": parallel,
    "forks": forks,
}


async def run(options: argparse.Namespace) -> dict[str, Any]:
    return {part: await PARTS[part](options) for part in options.parts or PARTS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--work-s", type=float, default=2.0)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--spawns", type=int, default=100)
    options = parser.parse_args()
    if unknown := set(options.parts) - PARTS.keys():
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    print_figures(asyncio.run(run(options)))


if __name__ == "__main__":
    main()
