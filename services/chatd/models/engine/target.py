"""The target of a model call: endpoint, model and key."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from chatd.models.domain.catalogue import ProviderType
from parley.settings import Secret

# The name of a region becomes a part of the host that a key is sent to.
AWS_REGION = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
# Shared servers route by the Host header, so it decides which tenant receives the key.
HOST_HEADER = "has an option extra_headers that sets Host; set the base URL instead."


@dataclass(frozen=True, slots=True)
class Target:
    """A model at an endpoint, with the key to it.

    Attributes:
        provider_id: The provider whose metadata this endpoint understands; that of others is left
            out.
        provider_type: The kind of endpoint.
        provider_name: The display name, used in errors.
        model_name: The endpoint's name of the model.
        base_url: Address without a trailing slash; empty for the protocol's own.
        api_key: The key; for Bedrock, "access key:secret key" or with a third part, a session.
        options: Administrator options of provider and model; the model's own take precedence.
    """

    provider_id: str
    provider_type: ProviderType
    provider_name: str
    model_name: str
    base_url: str
    api_key: Secret
    options: Mapping[str, object] = field(default_factory=dict)


def is_host_header(name: str) -> bool:
    """Return whether a header is the Host header."""
    return name.strip().lower() == "host"


def fault_in_options(options: Mapping[str, object]) -> str | None:
    """Return why options send the key elsewhere or fail at every call; None if they do not."""
    region, headers = options.get("region"), options.get("extra_headers")
    if isinstance(region, str) and region and not AWS_REGION.fullmatch(region):
        return "has a region that is no region of AWS, such as eu-central-1"
    if isinstance(headers, Mapping) and any(is_host_header(str(name)) for name in headers):
        return "has extra_headers that set Host; set the base URL instead"
    return None
