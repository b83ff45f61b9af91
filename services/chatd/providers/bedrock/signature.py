"""The AWS Signature Version 4 of a request."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

SERVICE = "bedrock"


@dataclass(frozen=True, slots=True)
class AwsKey:
    """An AWS key; its repr hides the secret parts."""

    access_key: str
    secret_key: str
    session_token: str = ""

    def __repr__(self) -> str:
        return "AwsKey(...)"


def signed_headers(
    url: str, body: bytes, key: AwsKey, *, region: str, now: datetime
) -> Mapping[str, str]:
    """Return the headers that authenticate a POST of `body` to `url`.

    Args:
        url: The URL, exactly as it is sent.
        body: The request body.
        key: The key to sign with.
        region: Region of the service.
        now: The time; AWS rejects a signature that is minutes old.
    """
    # Imported lazily: only installations with Bedrock need it.
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    timestamp = now.strftime("%Y%m%dT%H%M%SZ")
    headers = {"content-type": "application/json", "x-amz-date": timestamp}
    if key.session_token:
        headers["x-amz-security-token"] = key.session_token
    credentials = Credentials(key.access_key, key.secret_key, key.session_token or None)
    signer = SigV4Auth(credentials, SERVICE, region)
    request = AWSRequest(method="POST", url=url, headers=headers, data=body)
    # The signer's own entry point reads the system clock.
    request.context["timestamp"] = timestamp
    to_sign = signer.string_to_sign(request, signer.canonical_request(request))
    names = signer.signed_headers(signer.headers_to_sign(request))
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={signer.scope(request)}, "
        f"SignedHeaders={names}, Signature={signer.signature(to_sign, request)}"
    )
    return headers
