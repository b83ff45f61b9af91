"""The JSON bodies that the protos declare, for tests."""

from functools import cache

from gateway.api.contract import bindings
from gateway.api.json_input import Body
from gateway.api.transcoded_route import body_type_of
from parley.contract.bindings import HttpBinding


@cache
def binding(route: str) -> HttpBinding:
    """Return the binding of a route, such as "POST /chats"."""
    verb, path = route.split(" ")
    (found,) = (each for each in bindings() if (each.verb, each.path) == (verb, f"/api/v1{path}"))
    return found


@cache
def body(route: str) -> Body:
    """Return the body of a route, such as "POST /chats"."""
    found = body_type_of(binding(route))
    assert found is not None
    return found
