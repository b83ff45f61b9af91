import asyncio
import sys
from pathlib import Path

from support.client.chat_service import (
    FakeChatd,
    Pause,
    StreamStep,
    Tokens,
    answer_event,
    delta_event,
    status_event,
)

EXAMPLE = Path(__file__).parents[4] / "examples" / "internal_caller.py"


async def run_example(*arguments: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(EXAMPLE),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(30):
            output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, output.decode(), errors.decode()


async def test_the_example_caller_prints_the_answer_as_it_comes(
    tokens: Tokens, chatd: FakeChatd, tmp_path: Path
) -> None:
    token_file = tmp_path / "nightly.token"
    token_file.write_text(f"{tokens.issue()}\n")
    live: list[StreamStep] = [
        status_event("1", "running"),
        delta_event("2", 1, "hel"),
        delta_event("3", 2, "lo"),
    ]
    stored = [answer_event("4", 2, "hello"), status_event("5", "waiting")]
    chatd.streams.scripts.extend([[*live, *stored, Pause()], [*stored, Pause()]])

    code, output, errors = await run_example(
        "--token-file", str(token_file), str(chatd.address), "hi"
    )

    (chat_id,) = chatd.chats.chats
    assert (code, output, errors) == (0, "hello\n", f"chat {chat_id}\n")


async def test_the_example_caller_prints_each_text_once_whatever_was_streamed_of_it(
    tokens: Tokens, chatd: FakeChatd, tmp_path: Path
) -> None:
    token_file = tmp_path / "nightly.token"
    token_file.write_text(tokens.issue())
    stored = [
        answer_event("5", 2, "hello"),
        answer_event("6", 3, "world"),
        status_event("7", "waiting"),
    ]
    live: list[StreamStep] = [delta_event("2", 1, "hel"), *stored]
    chatd.streams.scripts.extend([[*live, Pause()], [*stored, Pause()]])

    code, output, _ = await run_example("--token-file", str(token_file), str(chatd.address), "hi")

    assert (code, output) == (0, "hello\nworld\n")


async def test_the_example_caller_says_what_is_wrong(
    tokens: Tokens, chatd: FakeChatd, tmp_path: Path
) -> None:
    token_file = tmp_path / "nightly.token"
    token_file.write_text(tokens.issue("chat:read"))

    refused = await run_example("--token-file", str(token_file), str(chatd.address), "hi")
    misled = await run_example("--token-file", str(token_file), "nowhere", "hi")

    assert (refused[0], refused[2].partition(":")[0]) == (1, "SCOPE_MISSING")
    assert (misled[0], misled[2].partition(":")[0]) == (2, "'nowhere'")
