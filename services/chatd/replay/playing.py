"""Plays one recording: a local server sends its bytes to the real adapter."""

from pathlib import Path

from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text
from chatd.content.domain.prompts import PromptMessage
from chatd.models.domain.catalogue import ProviderType
from chatd.models.domain.language_model import ModelError, ModelRequest
from chatd.models.engine.target import Target
from chatd.providers.anthropic import AnthropicWire
from chatd.providers.completions import CompletionsWire
from chatd.providers.responses import ResponsesWire
from chatd.providers.transport import HttpModels
from chatd.providers.wire import Wire
from chatd.replay.outcome import Outcome
from parley.clock import Clock
from parley.settings import Secret
from parley.testing.llm_mock import MockModels, Recording, RecordingUnreadable, read_recording

OPENAI_HOST = "api.openai.com"
MODEL = "recorded"
QUESTION = ModelRequest(
    model=MODEL,
    messages=(PromptMessage(Role.USER, (Text("Say it again."),)),),
    tools=(),
)


class NotPlayable(Exception):
    """The file holds no recording, or one of an unsupported protocol; the message says why."""


async def play(path: Path, models: HttpModels, clock: Clock) -> Outcome:
    """Return the accumulated events of a recording; an error in the recording is part of it.

    Raises:
        NotPlayable: the file cannot be played.
    """
    try:
        recording = read_recording(path)
    except RecordingUnreadable as error:
        raise NotPlayable(str(error)) from error
    wire = _wire(recording, path)
    outcome = Outcome()
    async with MockModels.serving(clock=clock, recordings=(recording,)) as server:
        target = _target(recording, server.url)
        try:
            await models.answer(wire, QUESTION, target, outcome.on_event)
        except ModelError as error:
            outcome.error = error
    return outcome


def _wire(recording: Recording, path: Path) -> Wire:
    match recording.protocol:
        case "/messages":
            return AnthropicWire()
        case "/responses":
            return ResponsesWire()
        case "/chat/completions":
            return CompletionsWire()
        case _:
            raise NotPlayable(
                f"{path} was recorded at {recording.path}: only Anthropic Messages, OpenAI "
                "Responses and Chat Completions can be played"
            )


def _target(recording: Recording, url: str) -> Target:
    if recording.protocol == "/messages":
        kind, base_url = ProviderType.ANTHROPIC, url
    elif recording.host == OPENAI_HOST:
        kind, base_url = ProviderType.OPENAI, f"{url}/v1"
    else:
        kind, base_url = ProviderType.OPENAI_COMPATIBLE, f"{url}/v1"
    return Target(
        provider_id=MODEL,
        provider_type=kind,
        provider_name=recording.host or kind.value,
        model_name=MODEL,
        base_url=base_url,
        api_key=Secret("recorded"),
    )
