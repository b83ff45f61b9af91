"""`parley login`, `whoami`, `logout` and `users` against a real gateway."""

import json
import stat
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


async def test_a_password_signs_the_command_line_in_and_out(
    stack: GatewayStack, shell: Shell, tmp_path: Path
) -> None:
    browser = await invited(stack)
    signed_in = await shell.parley(
        "login", shell.url, "--login", "ada", "--password-stdin", typed=f"{PASSWORD}\n"
    )
    file = tmp_path / "home" / ".config" / "parley" / "login.json"
    mode = stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)
    (key,) = (await browser.call("GET", "/api/v1/me/api-keys")).json()["items"]
    stored = json.loads(file.read_text())
    sessions = (await browser.call("GET", "/api/v1/me/sessions")).json()["items"]
    who = await shell.parley("whoami")
    with_url = await shell.parley("whoami", PARLEY_URL=shell.url)
    signed_out = await shell.parley("logout")
    keys = (await browser.call("GET", "/api/v1/me/api-keys")).json()["items"]
    again = await shell.parley("logout")
    without_key = await shell.parley("whoami")

    assert signed_in == (0, f"Signed in to {shell.url} as ada; the key is in {file}.\n")
    assert mode == (0o600, 0o700)
    assert stored == {
        "url": shell.url,
        "login": "ada",
        "api_key_id": key["id"],
        "api_key": stored["api_key"],
    }
    assert key["name"].startswith("parley on ")
    # Only that of the browser: the command line goes on with its key.
    assert len(sessions) == 1
    assert who == with_url == (0, f"ada (member) at {shell.url}\n")
    assert signed_out == (0, f"Signed out of {shell.url}.\n")
    assert keys == []
    assert again == (0, "Nobody is signed in here.\n")
    assert (without_key[0], "`parley login URL`" in without_key[1]) == (1, True)


async def test_a_second_login_revokes_the_key_that_it_replaces(
    stack: GatewayStack, shell: Shell, tmp_path: Path
) -> None:
    browser = await invited(stack)
    for _ in range(2):
        await shell.parley(
            "login", shell.url, "--login", "ada", "--password-stdin", typed=f"{PASSWORD}\n"
        )
    keys = (await browser.call("GET", "/api/v1/me/api-keys")).json()["items"]
    file = tmp_path / "home" / ".config" / "parley" / "login.json"

    assert [key["id"] for key in keys] == [json.loads(file.read_text())["api_key_id"]]


async def test_a_wrong_password_stores_nothing(
    stack: GatewayStack, shell: Shell, tmp_path: Path
) -> None:
    await invited(stack)
    code, printed = await shell.parley(
        "login", shell.url, "--login", "ada", "--password-stdin", typed="wrong\n"
    )

    assert code == 1
    assert "The login or the password is wrong." in printed
    assert "PARLEY_API_KEY" not in printed
    assert not (tmp_path / "home" / ".config").exists()


async def test_a_piped_password_without_a_login_is_refused(shell: Shell) -> None:
    code, printed = await shell.parley("login", shell.url, "--password-stdin", typed="secret\n")

    assert (code, "--password-stdin needs --login NAME" in printed) == (2, True)


async def test_a_user_who_has_signed_in_is_not_invited_again(
    stack: GatewayStack, shell: Shell
) -> None:
    await invited(stack)
    again = await shell.as_owner(stack, "users", "invite", "ada")

    assert (again[0], "`parley users reset ada`" in again[1]) == (2, True)
    assert "/link?token=" not in again[1]


async def test_a_user_is_locked_out_and_let_in_again(
    stack: GatewayStack, shell: Shell, tmp_path: Path
) -> None:
    await invited(stack)
    archive = str(tmp_path / "ada.zip")
    refused = await shell.as_owner(stack, "users", "export", "ada", archive)
    deactivated = await shell.as_owner(stack, "users", "deactivate", "ada")
    locked_out = await shell.as_owner(stack, "users", "ls")
    no_link = await shell.as_owner(stack, "users", "reset", "ada")
    reactivated = await shell.as_owner(stack, "users", "reactivate", "ada")
    signed_in = await shell.parley(
        "login", shell.url, "--login", "ada", "--password-stdin", typed=f"{PASSWORD}\n"
    )
    unknown = await shell.as_owner(stack, "users", "deactivate", "grace")

    assert (refused[0], "with `parley users deactivate ada`" in refused[1]) == (1, True)
    assert deactivated == (
        0, "Deactivated ada; `parley users reactivate ada` lets them in again.\n",
    )  # fmt: skip
    assert "deactivated" in locked_out[1]
    assert (no_link[0], "`parley users reactivate ada`" in no_link[1]) == (1, True)
    assert reactivated == (0, "Reactivated ada.\n")
    assert signed_in[0] == 0
    assert unknown == (1, "parley: there is no user grace: see `parley users ls`\n")


async def test_an_invitation_of_a_user_who_exists_changes_nothing_about_them(
    stack: GatewayStack, shell: Shell
) -> None:
    first = await shell.as_owner(stack, "users", "invite", "grace")
    promoted = await shell.as_owner(stack, "users", "invite", "grace", "--role", "admin")
    renamed = await shell.as_owner(stack, "users", "invite", "grace", "--email", "g@parley.test")
    again = await shell.as_owner(stack, "users", "invite", "grace", "--role", "member")

    refusal = (
        "parley: there is a user grace already, with the role member: "
        "leave out --role, --display-name and --email to print a new link; "
        "`parley users role grace ROLE` changes the role\n"
    )
    assert (promoted, renamed) == ((1, refusal), (1, refusal))
    assert ([first[0], again[0]], "/link?token=" in again[1]) == ([0, 0], True)
    assert "There is a user grace already" in again[1]


async def test_an_owner_changes_the_role_of_a_user(stack: GatewayStack, shell: Shell) -> None:
    await shell.as_owner(stack, "users", "invite", "grace")
    changed = await shell.as_owner(stack, "users", "role", "grace", "admin")
    users = json.loads((await shell.as_owner(stack, "users", "ls", "--json"))[1])["items"]

    assert changed == (0, "grace has the role admin.\n")
    assert {each["role"] for each in users if each["login"] == "grace"} == {"admin"}


async def test_an_invited_person_signs_in_by_the_link(stack: GatewayStack, shell: Shell) -> None:
    code, printed = await shell.as_owner(stack, "users", "invite", "grace", "--role", "auditor")
    link = printed.splitlines()[0].replace("http://parley.test:8080", shell.url)
    signed_in = await shell.parley("login", link, "--password-stdin", typed=f"{PASSWORD}\n")
    spent = await shell.parley("login", link, "--password-stdin", typed=f"{PASSWORD}\n")
    who = await shell.parley("whoami", "--json")

    assert (code, link.startswith(f"{shell.url}/link?token=")) == (0, True)
    assert (signed_in[0], "Your login is grace." in signed_in[1]) == (0, True)
    assert (spent[0], "The link was used before" in spent[1]) == (1, True)
    assert (json.loads(who[1])["login"], json.loads(who[1])["role"]) == ("grace", "auditor")


async def test_a_forgotten_password_is_set_anew_by_a_link(
    stack: GatewayStack, shell: Shell
) -> None:
    await invited(stack)
    code, printed = await shell.as_owner(stack, "users", "reset", "ada")
    link = printed.splitlines()[0].replace("http://parley.test:8080", shell.url)
    new = "eleven loud turtles sing"
    signed_in = await shell.parley("login", link, "--password-stdin", typed=f"{new}\n")
    unknown = await shell.as_owner(stack, "users", "reset", "nobody")
    listed = await shell.as_owner(stack, "users", "ls")

    assert (code, signed_in[0]) == (0, 0)
    assert unknown == (1, "parley: there is no user nobody: see `parley users ls`\n")
    assert [line.split()[:2] for line in listed[1].splitlines()[1:]] == [
        ["ada", "member"],
        ["owner", "owner"],
    ]


async def test_a_named_home_and_the_environment_win_over_the_stored_key(
    stack: GatewayStack, shell: Shell, tmp_path: Path
) -> None:
    await invited(stack)
    await shell.parley(
        "login", shell.url, "--login", "ada", "--password-stdin", typed=f"{PASSWORD}\n"
    )
    owner = await shell.as_owner(stack, "whoami")
    home = await shell.parley("whoami", "--home", str(tmp_path / "other"))
    elsewhere = await shell.parley("whoami", PARLEY_URL="http://127.0.0.1:1")

    assert owner == (0, f"owner (owner) at {shell.url}\n")
    assert (home[0], "does not run in" in home[1]) == (1, True)
    assert (elsewhere[0], "without PARLEY_API_KEY" in elsewhere[1]) == (2, True)
