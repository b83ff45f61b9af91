"""`parley api-keys`, `sessions`, `groups` and `token` against a real gateway."""

from pathlib import Path

import pytest

from support.gateway.browser import PASSWORD, invited
from support.gateway.shell import Shell
from support.gateway.stack import GatewayStack


@pytest.fixture
def shell(
    stack: GatewayStack,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Shell:
    return Shell(stack, tmp_path / "home", capsys, monkeypatch)


async def test_a_key_is_made_used_listed_and_revoked(stack: GatewayStack, shell: Shell) -> None:
    made = await shell.as_owner(stack, "api-keys", "create", "nightly", "--days", "1")
    key, details = made[1].splitlines()
    key_id = details.removeprefix("id ").split(",")[0]
    used = await shell.parley("whoami", PARLEY_URL=shell.url, PARLEY_API_KEY=key)
    unknown = await shell.as_owner(stack, "api-keys", "create", "odd", "--scope", "chat:everything")
    listed = await shell.as_owner(stack, "api-keys", "ls")
    revoked = await shell.as_owner(stack, "api-keys", "revoke", key_id)
    refused = await shell.parley("whoami", PARLEY_URL=shell.url, PARLEY_API_KEY=key)
    ended = await shell.as_owner(stack, "api-keys", "ls", "--all")

    assert (made[0], used) == (0, (0, f"owner (owner) at {shell.url}\n"))
    assert (unknown[0], "UNKNOWN_SCOPE" in unknown[1]) == (1, True)
    assert (listed[0], f"{key_id}  nightly" in listed[1], key in listed[1]) == (0, True, False)
    assert revoked == (0, f"Revoked {key_id}.\n")
    assert refused[0] == 1
    assert key_id in ended[1]


async def test_all_browsers_of_a_user_are_signed_out(stack: GatewayStack, shell: Shell) -> None:
    browser = await invited(stack)
    await shell.parley(
        "login", shell.url, "--login", "ada", "--password-stdin", typed=f"{PASSWORD}\n"
    )
    listed = await shell.parley("sessions", "ls")
    ended = await shell.parley("sessions", "revoke", "--others")
    refused = await browser.call("GET", "/api/v1/me")
    nothing = await shell.parley("sessions", "revoke", "--others")
    unknown = await shell.parley("sessions", "revoke", "no-session")
    who = await shell.parley("whoami")

    assert (listed[0], len(listed[1].splitlines())) == (0, 2)
    assert (ended, refused.status) == ((0, "Ended 1 session.\n"), 401)
    assert nothing == (0, "Ended 0 sessions.\n")
    assert unknown[0] == 1
    # The key of the command line is no session.
    assert who == (0, f"ada (member) at {shell.url}\n")


async def test_a_group_gets_and_loses_a_member(stack: GatewayStack, shell: Shell) -> None:
    await invited(stack)
    made = await shell.as_owner(stack, "groups", "create", "Engineers")
    taken = await shell.as_owner(stack, "groups", "create", "engineers")
    added = await shell.as_owner(stack, "groups", "add-member", "engineers", "ada")
    shown = await shell.as_owner(stack, "groups", "show", "Engineers")
    listed = await shell.as_owner(stack, "groups", "ls")
    removed = await shell.as_owner(stack, "groups", "remove-member", "Engineers", "ada")
    empty = await shell.as_owner(stack, "groups", "show", "Engineers")
    deleted = await shell.as_owner(stack, "groups", "rm", "Engineers")
    missing = await shell.as_owner(stack, "groups", "show", "Engineers")

    assert (made[0], taken[0]) == (0, 1)
    assert added == (0, "ada belongs to Engineers.\n")
    assert [line.split()[0] for line in shown[1].splitlines()] == ["login", "ada"]
    assert listed[1].splitlines()[1].split()[:2] == ["Engineers", "1"]
    assert removed == (0, "ada does not belong to Engineers any more.\n")
    assert len(empty[1].splitlines()) == 1
    assert deleted == (0, "Deleted Engineers.\n")
    assert missing == (1, "parley: there is no group Engineers: see `parley groups ls`\n")
