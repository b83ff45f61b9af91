"""Refusals and authentication of OpenAI."""

import msgspec

from parley.testing.llm_mock.errors import Refused
from parley.testing.llm_mock.exchange.parsing import ParseError, ParseErrorKind
from parley.testing.llm_mock.exchange.request import HttpRequest

ERROR_TYPES = {401: "invalid_request_error", 403: "invalid_request_error", 429: "requests"}
CODES = {
    401: "invalid_api_key",
    403: "unsupported_country_region_territory",
    404: "model_not_found",
    429: "rate_limit_exceeded",
}
NO_KEY = (
    "You didn't provide an API key. You need to provide your API key in an Authorization header "
    "using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
)
NO_AZURE_KEY = (
    "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a "
    "valid key for an active subscription and use a correct regional API endpoint for your "
    "resource."
)
NO_QUOTA = (
    "You exceeded your current quota, please check your plan and billing details. For more "
    "information on this error, read the docs: "
    "https://platform.openai.com/docs/guides/error-codes/api-errors."
)


def authorise(request: HttpRequest) -> None:
    """Accept a request with a key.

    Raises:
        Refused: it has no key.
    """
    is_azure = request.path.startswith("/openai/")
    bearer = request.headers.get("authorization", "").removeprefix("Bearer").strip()
    if bearer or (is_azure and request.headers.get("api-key")):
        return
    if is_azure:
        raise Refused(401, NO_AZURE_KEY, code="401")
    raise Refused(401, NO_KEY)


def refusal_body(refused: Refused) -> bytes:
    """Return the body of a refusal."""
    usual = "server_error" if refused.status >= 500 else "invalid_request_error"
    code = refused.code or (None if refused.param else CODES.get(refused.status))
    error = {
        "message": refused.message,
        "type": refused.type or ERROR_TYPES.get(refused.status, usual),
        "param": refused.param or None,
        "code": code,
    }
    return msgspec.json.encode({"error": error})


def refusal_of(error: ParseError) -> Refused:
    """Return the refusal of a request that cannot be parsed."""
    param = error.place.indexed()
    match error.wrong:
        case ParseErrorKind.NOT_JSON:
            return Refused(
                400,
                "We could not parse the JSON body of your request. (HINT: This likely means you "
                f"aren't using your HTTP library correctly: {error.text})",
            )
        case ParseErrorKind.MISSING:
            message = f"Missing required parameter: '{param}'."
            return Refused(400, message, param=param, code="missing_required_parameter")
        case ParseErrorKind.UNKNOWN:
            message = f"Unknown parameter: '{param}'."
            return Refused(400, message, param=param, code="unknown_parameter")
        case ParseErrorKind.INVALID:
            message = f"Invalid value for '{param}': {error.text}."
            return Refused(400, message, param=param, code="invalid_value")


def no_quota() -> Refused:
    """Return the refusal for an exhausted quota."""
    return Refused(429, NO_QUOTA, code="insufficient_quota", type="insufficient_quota")


def overflow(tokens: int, tokens_max: int, param: str) -> Refused:
    """Return the refusal of a prompt that is too long."""
    return Refused(
        400,
        f"This model's maximum context length is {tokens_max} tokens. However, your messages "
        f"resulted in {tokens} tokens. Please reduce the length of the messages.",
        param=param,
        code="context_length_exceeded",
    )


def too_long(param: str, text: str, length_max: int) -> Refused:
    """Return the refusal of a string that is too long."""
    return Refused(
        400,
        f"Invalid '{param}': string too long. Expected a string with maximum length {length_max}, "
        f"but got a string with length {len(text)} instead.",
        param=param,
        code="string_above_max_length",
    )


def bad_pattern(param: str, pattern: str) -> Refused:
    """Return the refusal of a string with invalid characters."""
    return Refused(
        400,
        f"Invalid '{param}': string does not match pattern. Expected a string that matches the "
        f"pattern '{pattern}'.",
        param=param,
        code="invalid_value",
    )
