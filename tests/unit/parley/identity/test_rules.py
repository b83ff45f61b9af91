from parley.identity import CallerRule, Role, ServiceName, rule_of
from support.rpc.declared_methods import SERVICE, declared_file
from support.rpc.undeclared_methods import undeclared_methods


def test_a_rule_is_read_from_the_methods_option() -> None:
    declared_file()

    assert rule_of(f"/{SERVICE}/ForServices") == CallerRule(services=frozenset({ServiceName.CHATD}))
    assert rule_of(f"/{SERVICE}/ForMembers") == CallerRule(
        for_users=frozenset({ServiceName.GATEWAY}),
        roles=frozenset({Role.OWNER, Role.MEMBER}),
        scope="chats:write",
    )


def test_an_unknown_method_has_no_rule() -> None:
    declared_file()

    assert rule_of(f"/{SERVICE}/Missing") is None
    assert rule_of("/nowhere.Service/Method") is None
    assert rule_of("") is None
    assert rule_of("/") is None


def test_methods_that_name_no_caller_are_found() -> None:
    assert undeclared_methods([declared_file()]) == tuple(
        f"/{SERVICE}/{name}"
        for name in ("ForNobody", "ForUnspecified", "ForUnspecifiedRole", "Undeclared")
    )
