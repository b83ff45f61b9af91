"""The intent that models give to every tool."""

import pytest

from mcpgateway.client.tool_names import without_intent

PLAIN = b'{"type":"object","properties":{"text":{"type":"string"}}}'
WITH_INTENT = b'{"type":"object","properties":{"model_intent":{"type":"string"}}}'


@pytest.mark.parametrize(
    ("given", "schema", "sent"),
    [
        (b'{"text":"a"}', PLAIN, b'{"text":"a"}'),
        (b'{"text":"a","model_intent":"b"}', PLAIN, b'{"text":"a"}'),
        (b'{"model_intent":"b"}', b"", b"{}"),
        (b'{"model_intent":"b"}', b"true", b"{}"),
        (b'{"model_intent":"b"}', b'{"properties":[]}', b"{}"),
        (b'{"model_intent":"b"}', WITH_INTENT, b'{"model_intent":"b"}'),
        # What only looks like it is of the tool.
        (b'{"text": "model_intent"}', PLAIN, b'{"text": "model_intent"}'),
        (b'{"a":{"model_intent":1.50}}', PLAIN, b'{"a":{"model_intent":1.50}}'),
        (b'{"a":1.50,"model_intent":""}', PLAIN, b'{"a":1.50}'),
    ],
)
def test_no_server_gets_an_intent_that_its_tool_does_not_take(
    given: bytes, schema: bytes, sent: bytes
) -> None:
    assert without_intent(given, schema) == sent
