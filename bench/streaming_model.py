"""A model that writes Markdown at a steady rate, for benches of what shows it."""

import asyncio
import itertools
import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from aiohttp import web

from support.stack.local_stack import LocalStack
from support.stack.page_session import call

#: Pieces are sent together, as models do.
BATCH_S = 0.02
WANTED = re.compile(r"write (\d+) tokens")
WORDS = [
    "the",
    "page",
    "shows",
    "what",
    "the",
    "model",
    "writes",
    "while",
    "it",
    "comes",
    "and",
    "keeps",
    "what",
    "was",
    "shown",
    "before",
]


def _section(number: int) -> str:
    """Return a part of an answer as models write them: text, a list, code and a table."""
    words = [WORDS[(number + at) % len(WORDS)] for at in range(60)]
    items = "".join(f"- **{words[at]}** and `{words[at + 1]}`\n" for at in range(8))
    code = "".join(f'    {words[at]}_{at} = f({at}, "{words[at + 1]}")\n' for at in range(12))
    rows = "".join(f"| {at} | {words[at]} | {words[at + 2]} |\n" for at in range(6))
    return (
        f"## Part {number}\n\n{' '.join(words)}.\n\n{items}\n"
        f"```python\ndef part_{number}():\n{code}```\n\n| n | a | b |\n|---|---|---|\n{rows}\n"
    )


def tokens() -> Iterator[str]:
    """Return pieces of four characters or so, without end."""
    for number in itertools.count(1):
        yield from re.findall(r"[\s\S]{1,4}", _section(number))


def _chunk(delta: dict[str, str], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    chunk = {"id": "c", "object": "chat.completion.chunk", "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\n".encode()


async def _answer(request: web.Request, rate: int) -> web.StreamResponse:
    body = await request.json()
    asked = WANTED.findall(json.dumps(body["messages"]))
    count = int(asked[-1]) if asked else 1
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    await response.write(_chunk({"role": "assistant", "content": ""}))
    began, sent, pieces = time.monotonic(), 0, tokens()
    while sent < count:
        await asyncio.sleep(BATCH_S)
        due = min(count, round((time.monotonic() - began) * rate)) - sent
        if due > 0:
            await response.write(_chunk({"content": "".join(itertools.islice(pieces, due))}))
            sent += due
    await response.write(_chunk({}, "stop") + b"data: [DONE]\n\n")
    return response


@asynccontextmanager
async def streaming_model(stack: LocalStack, rate: int) -> AsyncIterator[str]:
    """Give the id of a model of a stack that writes as many tokens as it is asked for."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return await _answer(request, rate)

    application = web.Application()
    application.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        provider = {
            "name": "bench",
            "type": "openai_compatible",
            "base_url": f"http://127.0.0.1:{port}/v1",
        }
        provider_id = call(stack, "POST", "/api/v1/providers", provider)["id"]
        key = {"provider_id": provider_id, "key": "sk-of-the-bench-0123456789"}
        call(stack, "POST", "/api/v1/provider-keys", key)
        model = {"provider_id": provider_id, "name": "streaming"}
        yield call(stack, "POST", "/api/v1/models", model)["id"]
    finally:
        await runner.cleanup()
