"""People sign in with a password, and guessing is slow without locking anybody out for good."""

import asyncio
import re
import sys
from collections.abc import Awaitable
from pathlib import Path

import asyncpg
import psutil
import pytest
from argon2 import extract_parameters

from gateway.http.application import SECURITY_HEADERS
from gateway.identity.engine.attempts import LOGIN_AND_ADDRESS
from gateway.identity.engine.password_wait import WAIT_S, PasswordWait
from gateway.identity.engine.passwords import Passwords, problem_of, processes_for
from gateway.identity.errors import SignInBusy
from gateway.identity.hashing.hasher import Answer, Hash, Request, Verify
from gateway.identity.hashing.process import HashingFailed, HashingProcess
from gateway.identity.hashing.program import NICENESS, SESSION_NICENESS
from gateway.web.documents import POLICY
from parley.clock import FakeClock
from support.gateway.browser import PASSWORD, Browser, invited, new_user
from support.gateway.stack import GatewayStack, gateway_stack
from support.net.http_client import Reply

SIGN_IN = "/api/v1/sign-in"
WRONG = "some entirely wrong words"


async def sign_in(
    stack: GatewayStack, login: str, password: str, address: str | None = None
) -> Reply:
    headers = {} if address is None else {"X-Forwarded-For": address}
    body = {"login": login, "password": password}
    return await stack.anonymous.request("POST", SIGN_IN, body, headers)


@pytest.mark.parametrize(("processors", "processes"), [(1, 1), (2, 1), (3, 2), (64, 2)])
def test_a_processor_is_left_to_everything_else(processors: int, processes: int) -> None:
    assert processes_for(processors) == processes


def session_priority(pid: int) -> str:
    """Return what the kernel says of a session's share; "" if sessions have none."""
    group = Path(f"/proc/{pid}/autogroup")
    return group.read_text().strip().partition(" ")[2] if group.exists() else ""


async def test_passwords_are_hashed_in_processes_that_yield_to_others_and_end() -> None:
    passwords, own = Passwords(processes=2), psutil.Process()
    before = set(own.children())
    try:
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            for _ in range(2):
                tasks.create_task(passwords.hash(PASSWORD))
        started = set(own.children()) - before
        assert [each.nice() for each in started] == [NICENESS] * 2
        assert {session_priority(each.pid) for each in started} <= {f"nice {SESSION_NICENESS}", ""}
    finally:
        passwords.close()
    assert set(own.children()) - before == set()


async def test_a_hashing_process_that_died_is_replaced() -> None:
    process = HashingProcess()
    own = psutil.Process()
    before = set(own.children())
    try:
        stored = await asyncio.to_thread(process.ask, Hash(PASSWORD))
        assert isinstance(stored, str)
        (child,) = set(own.children()) - before
        child.kill()
        assert await asyncio.to_thread(process.ask, Verify(PASSWORD, stored)) is True
        assert await asyncio.to_thread(process.ask, Verify(WRONG, stored)) is False
        (other,) = set(own.children()) - before
        assert other.pid != child.pid
    finally:
        process.close()
    with pytest.raises(HashingFailed):
        process.ask(Hash(PASSWORD))


async def test_a_hashing_process_that_is_stuck_is_replaced() -> None:
    process, own = HashingProcess(answer_s=10.0), psutil.Process()
    before = set(own.children())
    try:
        stored = await asyncio.to_thread(process.ask, Hash(PASSWORD))
        assert isinstance(stored, str)
        (child,) = set(own.children()) - before
        child.suspend()
        assert await asyncio.to_thread(process.ask, Verify(PASSWORD, stored)) is True
        assert not child.is_running()
    finally:
        process.close()


async def test_a_hashing_process_ends_with_a_gateway_that_is_killed() -> None:
    program = (
        "import psutil\n"
        "from gateway.identity.hashing.process import HashingProcess\n"
        "from gateway.identity.hashing.hasher import Hash\n"
        "process = HashingProcess()\n"
        "process.ask(Hash('x'))\n"
        "print(psutil.Process().children()[0].pid, flush=True)\n"
        "input()"
    )
    pipe = asyncio.subprocess.PIPE
    gateway = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdin=pipe, stdout=pipe
    )
    assert gateway.stdout is not None
    async with asyncio.timeout(60):
        child = psutil.Process(int(await gateway.stdout.readline()))
        gateway.kill()
        await gateway.wait()
        await asyncio.to_thread(child.wait)
    assert not child.is_running()


async def test_a_person_signs_in_by_the_page_and_out_again(stack: GatewayStack) -> None:
    await invited(stack)
    browser = Browser(stack)
    page = await browser.open("/login")
    entered = await browser.submit(page, "/login", login=" ADA ", password=PASSWORD)
    home = await browser.open("/account")
    left = await browser.submit(home, "/logout")
    after = await browser.open("/account")

    locked_down = {
        **SECURITY_HEADERS,
        "content-security-policy": POLICY,
        "referrer-policy": "same-origin",
    }
    assert {name: page.headers[name] for name in locked_down} == locked_down
    assert b"<script" not in page.body
    assert (entered.status, entered.headers["location"]) == (303, "/")
    assert b"Signed in as ada" in home.body
    assert (left.status, left.headers["location"]) == (303, "/login")
    assert b"Nobody is signed in" in after.body
    assert [name for name in browser.cookies if "session" in name] == []


async def test_sign_ins_are_counted_by_method_and_outcome_without_names(
    stack: GatewayStack,
) -> None:
    await invited(stack)
    wrong = [await sign_in(stack, login, WRONG) for login in ("ada", "typed-by-mistake")]
    right = await sign_in(stack, "ada", PASSWORD)
    shown = stack.telemetry.telemetry.metrics_text()
    lines = [line for line in shown.splitlines() if line.startswith("gateway_sign_ins_total{")]
    counts = {
        tuple(re.findall(r'(?:method|outcome|reason)="(.*?)"', line)): float(line.split()[-1])
        for line in lines
    }

    assert ([each.status for each in wrong], right.status) == ([401, 401], 200)
    assert counts["password", "refused", "wrong_login_or_password"] == 2
    assert counts["password", "done", ""] == 1
    assert all(secret not in shown for secret in (WRONG, PASSWORD, "typed-by-mistake"))


async def test_a_program_signs_in_by_json_and_gets_cookies_and_a_csrf_token(
    stack: GatewayStack,
) -> None:
    await invited(stack)
    reply = await sign_in(stack, "ada", PASSWORD)

    session = reply.json()["session"]
    assert reply.status == 200
    assert (session["method"], session["is_current"], session["address"]) == (
        "password",
        True,
        "127.0.0.1",
    )
    names = [cookie.partition("=")[0] for cookie in reply.set_cookies]
    assert names == ["parley_csrf", "parley_device", "parley_session"]
    assert ["HttpOnly" in cookie for cookie in reply.set_cookies] == [False, True, True]
    assert f"parley_csrf={reply.json()['csrf_token']}; " in reply.set_cookies[0]


async def test_over_https_all_cookies_are_bound_to_their_host(
    tmp_path: Path, identity_database: str
) -> None:
    async with gateway_stack(
        tmp_path, identity_database, public_url="https://parley.test"
    ) as stack:
        browser = await invited(stack)

    assert sorted(browser.cookies) == [
        "__Host-parley_csrf",
        "__Host-parley_device",
        "__Host-parley_form",
        "__Host-parley_session",
    ]


async def test_a_wrong_login_and_a_wrong_password_are_answered_alike(stack: GatewayStack) -> None:
    await invited(stack)
    no_password = await new_user(stack, "eve")
    replies = [
        await sign_in(stack, login, WRONG) for login in ("ada", "nobody", "eve", "owner", "\u00e4")
    ]

    assert no_password
    assert {reply.status for reply in replies} == {401}
    documents = [{**reply.json(), "request_id": "", "trace_id": ""} for reply in replies]
    assert documents == [documents[0]] * 5
    assert documents[0]["code"] == "SIGN_IN_REFUSED"
    assert documents[0]["detail"].startswith("The login or the password is wrong.")


async def test_unknown_users_cost_one_hash_with_the_same_parameters_as_known_ones(
    stack: GatewayStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    await invited(stack)
    await new_user(stack, "bob")
    verified: list[str] = []
    ask = HashingProcess.ask

    def counted(process: HashingProcess, request: Request) -> Answer:
        assert isinstance(request, Verify)
        verified.append(request.stored)
        return ask(process, request)

    monkeypatch.setattr(HashingProcess, "ask", counted)
    runs = []
    for login in ("ada", "bob", "nobody-of-this-name"):
        verified.clear()
        assert (await sign_in(stack, login, WRONG)).status == 401
        runs.append([extract_parameters(stored) for stored in verified])

    assert len(runs[0]) == 1
    assert runs == [runs[0]] * 3


async def test_guessing_is_slowed_down_and_never_stopped_for_good(stack: GatewayStack) -> None:
    await invited(stack)
    guesses = [await sign_in(stack, "ada", WRONG) for _ in range(LOGIN_AND_ADDRESS.attempts + 1)]
    right_too_early = await sign_in(stack, "ada", PASSWORD)
    wait_s = int(right_too_early.headers["retry-after"])
    stack.clock.advance(wait_s)
    right = await sign_in(stack, "ada", PASSWORD)

    statuses = [guess.status for guess in guesses]
    assert statuses == [401] * LOGIN_AND_ADDRESS.attempts + [429]
    assert (right_too_early.status, right_too_early.json()["code"]) == (429, "TOO_MANY_ATTEMPTS")
    assert wait_s <= LOGIN_AND_ADDRESS.refill_s
    assert right.status == 200


async def test_one_address_guesses_slowly_whatever_the_login(stack: GatewayStack) -> None:
    statuses = [(await sign_in(stack, f"user-{number}", WRONG)).status for number in range(31)]

    assert statuses == [401] * 30 + [429]


async def test_the_page_says_when_to_try_again(stack: GatewayStack) -> None:
    browser = Browser(stack)
    reply = await browser.open("/login")
    for _ in range(LOGIN_AND_ADDRESS.attempts + 1):
        reply = await browser.submit(reply, "/login", login="ada", password=WRONG)

    assert (reply.status, int(reply.headers["retry-after"]) <= 31) == (429, True)
    assert b'role="alert">Too many attempts' in reply.body


@pytest.mark.parametrize("path", ["/login", "/link"])
async def test_a_form_is_taken_from_our_own_page_only(stack: GatewayStack, path: str) -> None:
    user_id = await new_user(stack)
    made = await stack.owner.request("POST", f"/api/v1/users/{user_id}/sign-in-links")
    address = made.json()["url"] if path == "/link" else path
    fields = {"login": "ada", "password": PASSWORD, "repeated": PASSWORD}
    other_site, without_cookie = Browser(stack, site="cross-site"), Browser(stack)
    page = await other_site.open(address)
    from_other_site = await other_site.submit(page, path, **fields)
    page = await without_cookie.open(address)
    without_cookie.cookies.clear()
    no_cookie = await without_cookie.submit(page, path, **fields)
    as_json = await stack.anonymous.request(
        "POST", path, fields, {"Sec-Fetch-Site": "same-origin", "Accept": "application/json"}
    )

    assert (from_other_site.status, no_cookie.status, as_json.status) == (403, 403, 415)


async def test_another_sites_page_signs_nobody_in_by_json(stack: GatewayStack) -> None:
    await invited(stack)
    body = {"login": "ada", "password": PASSWORD}
    statuses = [
        (await stack.anonymous.request("POST", SIGN_IN, body, headers)).status
        for headers in (
            {"Sec-Fetch-Site": "cross-site"},
            {"Origin": "http://evil.test"},
            {"Content-Type": "text/plain"},
            {"Sec-Fetch-Site": "same-origin"},
        )
    ]

    assert statuses == [403, 403, 415, 200]


async def test_a_password_is_changed_with_the_old_one_and_ends_other_sessions(
    stack: GatewayStack,
) -> None:
    browser, elsewhere = await invited(stack), Browser(stack)
    await elsewhere.call("POST", SIGN_IN, {"login": "ada", "password": PASSWORD})
    new = "eleven loud turtles sing"
    path = "/api/v1/me/password"
    wrong = await browser.call("POST", path, {"current_password": WRONG, "new_password": new})
    weak = await browser.call(
        "POST", path, {"current_password": PASSWORD, "new_password": "passwordpassword"}
    )
    changed = await browser.call("POST", path, {"current_password": PASSWORD, "new_password": new})
    here = await browser.call("GET", "/api/v1/me")
    there = await elsewhere.call("GET", "/api/v1/me")

    assert (wrong.status, wrong.json()["code"]) == (401, "SIGN_IN_REFUSED")
    assert (weak.status, weak.json()["errors"][0]["pointer"]) == (422, "/new_password")
    assert (changed.status, here.status, there.status) == (204, 200, 401)
    assert (await sign_in(stack, "ada", PASSWORD)).status == 401
    assert (await sign_in(stack, "ada", new)).status == 200


async def test_the_owner_sets_a_first_password(stack: GatewayStack) -> None:
    reply = await stack.owner.request("POST", "/api/v1/me/password", {"new_password": PASSWORD})

    assert reply.status == 204
    assert (await sign_in(stack, "owner", PASSWORD)).status == 200


async def test_only_so_many_passwords_wait() -> None:
    passwords = Passwords(processes=1, waiting_max=2)
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(passwords.hash(PASSWORD)) for _ in range(3)]
        await asyncio.wait(waiting, timeout=0)
        with pytest.raises(SignInBusy):
            await passwords.hash(PASSWORD)
    passwords.close()

    assert len({task.result() for task in waiting}) == 3


async def test_a_burst_of_strangers_leaves_places_to_people_who_are_known() -> None:
    passwords = Passwords(processes=1, waiting_max=4)
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        strangers = [
            tasks.create_task(passwords.matches(PASSWORD, None, is_known=False)) for _ in range(4)
        ]
        await asyncio.wait(strangers, timeout=0)
        with pytest.raises(SignInBusy):
            await passwords.matches(PASSWORD, None, is_known=False)
        known = tasks.create_task(passwords.matches(PASSWORD, None, is_known=True))
        await asyncio.wait([known], timeout=0)
        with pytest.raises(SignInBusy):
            await passwords.matches(PASSWORD, None, is_known=True)
    passwords.close()

    assert not any(task.result() for task in (*strangers, known))


@pytest.mark.parametrize("becomes_free", [True, False])
async def test_a_sign_in_waits_a_moment_for_a_place(becomes_free: bool) -> None:
    passwords, clock = Passwords(processes=1, waiting_max=0), FakeClock()
    wait = PasswordWait(passwords, clock)
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        hashing = tasks.create_task(passwords.hash(PASSWORD))
        await asyncio.wait([hashing], timeout=0)
        waiting = tasks.create_task(outcome(wait.require_place(is_known=True)))
        await clock.until_sleeping_for(WAIT_S)
        if becomes_free:
            await hashing
        clock.advance(WAIT_S)
        refused = await waiting
    passwords.close()

    assert isinstance(refused, SignInBusy) is not becomes_free


async def outcome(waited: Awaitable[None]) -> Exception | None:
    """Return the error of what is awaited."""
    try:
        await waited
    except SignInBusy as error:
        return error
    return None


async def test_a_password_that_no_process_can_check_is_no_attempt(
    stack: GatewayStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    await invited(stack)

    async def fail(passwords: Passwords, password: str, stored: str, *, is_known: bool) -> bool:
        raise SignInBusy

    with monkeypatch.context() as failing:
        failing.setattr(Passwords, "matches", fail)
        refused = {
            (await sign_in(stack, "ada", PASSWORD)).status
            for _ in range(LOGIN_AND_ADDRESS.attempts + 1)
        }

    assert refused == {503}
    assert (await sign_in(stack, "ada", PASSWORD)).status == 200


async def test_a_sign_in_that_is_refused_because_many_wait_is_no_attempt(
    stack: GatewayStack, identity_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await invited(stack)

    def refuse(passwords: Passwords, *, is_known: bool) -> None:
        raise SignInBusy

    with monkeypatch.context() as full:
        full.setattr(Passwords, "require_place", refuse)
        async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(sign_in(stack, "ada", WRONG))
            # Other tasks of the stack sleep as long, so that a look would not tell them apart.
            while not waiting.done():
                stack.clock.advance(WAIT_S)
                await asyncio.wait([waiting], timeout=0.05)
        refused = waiting.result()
    connection = await asyncpg.connect(identity_database)
    try:
        counted = await connection.fetchval("SELECT count(*) FROM identity.sign_in_attempts")
    finally:
        await connection.close()

    assert (refused.status, refused.json()["code"]) == (503, "SIGN_IN_BUSY")
    assert counted == 0
    assert (await sign_in(stack, "ada", PASSWORD)).status == 200


@pytest.mark.parametrize(
    ("password", "is_refused"),
    [
        ("passwordpassword", True),
        ("correcthorsebatterystaple", True),
        ("P@ssw0rd1234!", True),
        ("parleyparleyparley", True),
        ("adalovelace1815", True),
        ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", True),
        (PASSWORD, False),
        ("k3v9zq81mmpx", False),
        ("\u6f22\u5b57" * 3 + "k3v9zq81mm", False),
    ],
)
def test_common_and_guessable_passwords_are_refused(password: str, is_refused: bool) -> None:
    about = ("ada", "Ada Lovelace", "parley", "correcthorsebatterystaple", "adalovelace")

    assert (problem_of(password, about) is not None) is is_refused
