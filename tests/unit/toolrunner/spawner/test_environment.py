from pathlib import Path

from toolrunner.primitives.domain import NO_CHAT, ChatId, ProcessId
from toolrunner.spawner.client.environment import NON_INTERACTIVE, SEARCH_PATH, environment_of

BASE = {
    "PATH": SEARCH_PATH,
    "HOME": "/w/home",
    "LANG": "C.UTF-8",
    "TMPDIR": "/w/tmp",
    **NON_INTERACTIVE,
    "PARLEY_PROCESS_ID": "p",
}


def built(chat_id: ChatId = NO_CHAT, **declared: str) -> dict[str, str]:
    return environment_of(
        process_id=ProcessId("p"),
        chat_id=chat_id,
        home=Path("/w/home"),
        temporary=Path("/w/tmp"),
        declared=declared,
    )


def test_a_process_gets_what_is_listed_and_nothing_else() -> None:
    assert built() == BASE


def test_a_process_of_a_chat_knows_it() -> None:
    assert built(ChatId("c")) == {**BASE, "PARLEY_CHAT_ID": "c"}


def test_declared_variables_win_but_not_over_the_mark() -> None:
    assert built(PAGER="less", MINE="1", PARLEY_PROCESS_ID="x") == {
        **BASE,
        "PAGER": "less",
        "MINE": "1",
    }
