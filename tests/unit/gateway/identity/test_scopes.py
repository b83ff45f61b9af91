from gateway.identity.engine.scopes import known_scopes


def test_scopes_are_those_that_methods_ask_for() -> None:
    scopes = known_scopes()

    assert list(scopes) == sorted(set(scopes))
    assert {"chat:read", "chat:write", "identity:read", "identity:admin"} <= set(scopes)
