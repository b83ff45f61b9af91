"""The page offers each scope that a key may have, so that none has to be known by heart."""

import json
import re
from pathlib import Path

GATEWAY = Path(__file__).resolve().parents[2] / "services/gateway"
PAGE = GATEWAY / "web/page/src/settings/keys/key-scopes.ts"
#: Of routes that a key with any scope may use.
ANY = "any"


def test_the_page_offers_the_scopes_that_routes_ask_for_and_no_others() -> None:
    routes = json.loads((GATEWAY / "api/openapi.json").read_text())["paths"].values()
    asked = {route.get("x-scope") for path in routes for route in path.values()} - {ANY, None}
    assert sorted(re.findall(r'^  \["([a-z:]+)",', PAGE.read_text(), re.MULTILINE)) == sorted(asked)
