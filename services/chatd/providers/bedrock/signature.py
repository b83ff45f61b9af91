"""The signature of a request to AWS."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

SERVICE = "bedrock"


@dataclass(frozen=True, slots=True)
class AwsKey:
    """A key of AWS; its secret parts are not shown."""

    access_key: str
    secret_key: str
    session_token: str = ""

    def __repr__(self) -> str:
        return "AwsKey(...)"


def signed_headers(
    url: str, body: bytes, key: AwsKey, *, region: str, now: datetime
) -> Mapping[str, str]:
    """Return the headers that prove who sends `body` to `url`, and when.

    Args:
        url: Where the body is posted to, exactly as it goes on the wire.
        body: What is posted.
        key: Whose request it is.
        region: Region that the service is in.
        now: The time; AWS refuses a signature that is minutes old.
    """
    # Imported late: only installations with Bedrock pay for it.
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
    # The signer's own entry point asks the system for the time.
    request.context["timestamp"] = timestamp
    to_sign = signer.string_to_sign(request, signer.canonical_request(request))
    names = signer.signed_headers(signer.headers_to_sign(request))
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={signer.scope(request)}, "
        f"SignedHeaders={names}, Signature={signer.signature(to_sign, request)}"
    )
    return headers
