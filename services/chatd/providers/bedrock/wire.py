"""The wire format of Anthropic's models on Bedrock."""

import re
from collections.abc import Mapping
from urllib.parse import quote

from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.language_model import ModelError, ModelRequest
from chatd.models.engine.target import AWS_REGION, Target
from chatd.providers.anthropic import Options, body_of, encoded, extra_headers, options_of
from chatd.providers.anthropic.options import config_error
from chatd.providers.bedrock.decoder import BedrockDecoder
from chatd.providers.bedrock.signature import AwsKey, signed_headers
from chatd.providers.wire import Decoder, Framing, HttpRequest
from parley.clock import Clock

VERSION = "bedrock-2023-05-31"
REGION = "us-east-1"

_HOST = re.compile(r"//bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.")


class BedrockWire:
    """The wire format of Bedrock; a request is signed with the current time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def request(self, request: ModelRequest, target: Target) -> HttpRequest:
        """Return the HTTP request; it must be sent within minutes.

        Raises:
            ModelError: The provider would reject it.
        """
        options = options_of(target)
        body: dict[str, object] = {"anthropic_version": VERSION}
        if options.all_betas:
            body["anthropic_beta"] = list(options.all_betas)
        body |= body_of(request, target, options)
        body |= options.extra_body
        sent = encoded(body)
        region = _region(target, options)
        url = _url(target, region)
        headers = {
            "accept": "application/vnd.amazon.eventstream",
            **self._authority(target, url, sent, region),
            **extra_headers(options),
        }
        return HttpRequest(url, headers, sent, Framing.AWS_EVENT_STREAM)

    def decoder(self) -> Decoder:
        """Return a decoder for one answer."""
        return BedrockDecoder()

    def _authority(self, target: Target, url: str, body: bytes, region: str) -> Mapping[str, str]:
        """Return authentication headers: a signature, or a newer API key as a bearer token."""
        key = target.api_key.reveal()
        if not key:
            raise ModelError(
                ErrorKind.MISSING_KEY,
                f"{target.provider_name} has no key. Set one as "
                '"access key:secret key", with ":session token" if there is one.',
                is_retryable=False,
                provider=target.provider_name,
            )
        access_key, separator, rest = key.partition(":")
        if not separator:
            return {"content-type": "application/json", "authorization": f"Bearer {key}"}
        secret_key, _, session_token = rest.partition(":")
        aws_key = AwsKey(access_key, secret_key, session_token)
        return signed_headers(url, body, aws_key, region=region, now=self._clock.now())


def _region(target: Target, options: Options) -> str:
    if options.region and not AWS_REGION.fullmatch(options.region):
        # It becomes a part of the host that the key is sent to.
        raise config_error(target, "has an option region that is no region of AWS; correct it.")
    found = _HOST.search(target.base_url)
    return options.region or ("" if found is None else found[1]) or REGION


def _url(target: Target, region: str) -> str:
    base_url = target.base_url or f"https://bedrock-runtime.{region}.amazonaws.com"
    # A colon stays as it is: HTTP clients would decode it again, after the signature.
    return f"{base_url}/model/{quote(target.model_name, safe=':')}/invoke-with-response-stream"
