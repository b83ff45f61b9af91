"""Streams that are cut, torn or no streams at all: never a success, and never more than one try."""

from pathlib import Path

import aiohttp
import pytest

from chatd.chats.domain.chat import Status
from chatd.content.domain.messages import ErrorKind
from parley.http import HttpOptions
from parley.testing.llm_mock import Served
from support.chatd.models.mock_catalogue import Way
from support.chatd.providers.completions import DONE
from support.chatd.providers.completions import chunk as completion
from support.chatd.providers.provider_stage import ADD, ProviderStage, provider_stage
from support.host.virtual_time import in_virtual_time
from support.net.model_server import (
    LAST_CHUNK,
    Act,
    Script,
    chunk,
    head,
    loopback_certificate,
    model_server,
)

EVERY_WAY = pytest.mark.parametrize("way", Way)
ANSWER = "reasoning=2,preface=2,tools=2"
TERMINAL = {
    Way.ANTHROPIC: b"event: message_stop",
    Way.RESPONSES: b"event: response.completed",
    Way.COMPLETIONS: b'"finish_reason":"tool_calls"',
}


async def streamed(stage: ProviderStage, way: Way, words: str) -> list[bytes]:
    """Return the events of a stream as the mock sends it, asked for without any adapter."""
    await stage.chat().ask(stage.model(way, words))
    asked: Served = stage.mock.requests()[0]
    headers = {**asked.headers, "x-api-key": "any", "authorization": "Bearer any"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{stage.mock.url}{asked.path}", data=asked.body, headers=headers) as answer,
    ):
        body = await answer.read()
    return [event + b"\n\n" for event in body.split(b"\n\n")[:-1]]


@pytest.mark.slow
@EVERY_WAY
@in_virtual_time
async def test_c4_an_answer_cut_before_its_last_event_is_never_a_success(way: Way) -> None:
    async with provider_stage(ADD) as stage:
        events = await streamed(stage, way, ANSWER)
        (last,) = [place for place, event in enumerate(events) if TERMINAL[way] in event]
        bytes_to_last = sum(map(len, events[:last]))
        cuts = [f"cut={place}" for place in range(last + 1)]
        cuts += [f"cut_byte={place}" for place in range(0, bytes_to_last, 41)]
        false_completions = 0
        for cut in cuts:
            chat = stage.chat()
            await stage.clock.sleep(60)  # The failure before this one is forgotten.
            stage.mock.reset()
            stage.tools.order.clear()
            await chat.ask(stage.model(way, f"{ANSWER},{cut},times=1"))
            false_completions += not chat.retries
            assert [retry.error.kind for retry in chat.retries] == [ErrorKind.TIMEOUT]
            # Cut off, called two tools, answered: nothing of the first counts.
            assert stage.mock.stats().by_status == {200: 3}
            assert stage.tools.order == ["add", "add"]
            assert chat.state.status is Status.WAITING
        print(f"C4 {way}: {len(cuts)} cuts, {false_completions} false completions")
        assert false_completions == 0


@EVERY_WAY
@pytest.mark.parametrize("words", ["reset=0", "reset=5", "drop=0", "drop=5", "error=5"])
@in_virtual_time
async def test_c5_a_torn_connection_is_asked_again(way: Way, words: str) -> None:
    async with provider_stage() as stage:
        chat = stage.chat()
        await chat.ask(stage.model(way, f"{words},times=1"))
        attempts = stage.mock.stats().requests
        print(f"C5 {way} {words}: {attempts} attempts, first {chat.retries[0].error.kind}")
        assert (attempts, len(chat.retries)) == (2, 1)
        assert chat.retries[0].error.is_retryable
        assert chat.state.status is Status.WAITING


def sent(*events: bytes) -> tuple[bytes, ...]:
    return tuple(chunk(b"data: " + event + b"\n\n") for event in events)


WHOLE: Script = (head(), *sent(completion(content="yes"), completion("stop"), DONE), LAST_CHUNK)
BEGUN = (head(), *sent(completion(content="no")))


@pytest.mark.parametrize("ending", [Act.CLOSE, Act.RESET], ids=["closed", "broken"])
@in_virtual_time
async def test_c5_a_tls_connection_that_ends_early_is_asked_again(
    tmp_path: Path, ending: Act
) -> None:
    certified = loopback_certificate(tmp_path)
    async with (
        model_server((*BEGUN, ending), WHOLE, tls=certified.server) as server,
        provider_stage(url=server.url, options=HttpOptions(trust=certified.client)) as stage,
    ):
        chat = stage.chat()
        await chat.ask(stage.model(Way.COMPLETIONS))
        print(f"C5 TLS {ending.name.lower()}: {len(server.asked)} attempts")
        assert (len(server.asked), chat.said) == (2, "yes")


@pytest.mark.parametrize(
    "words",
    [
        "http2: server sent GOAWAY and closed the connection; LastStreamID=7, ErrCode=NO_ERROR",
        "http2: client connection force closed via ClientConn.Close",
        "stream error: stream ID 429; REFUSED_STREAM; received from peer",
    ],
)
@in_virtual_time
async def test_c5_an_http2_connection_that_a_proxy_lost_is_asked_again(words: str) -> None:
    lost = (*BEGUN, chunk(f"event: error\ndata: {words}\n\n".encode()), LAST_CHUNK)
    async with model_server(lost, WHOLE) as server, provider_stage(url=server.url) as stage:
        chat = stage.chat()
        await chat.ask(stage.model(Way.COMPLETIONS))
        print(f"C5 {words[:24]}: {len(server.asked)} attempts")
        assert (len(server.asked), chat.said) == (2, "yes")
        assert chat.retries[0].error.kind is ErrorKind.TIMEOUT
