"""Commands such as `/goal`, typed where a prompt is expected: what to use instead.

A model would answer them as text. Only whole first words that are in the list are refused; a path
such as `/etc/hosts` is a prompt like any other.
"""

from collections.abc import Callable, Mapping
from typing import Final

from parley.cli.errors import ConfigurationProblem

COMPACT: Final = "/compact"
#: What does the same here. The name stands for the chat in it.
INSTEAD: Final[Mapping[str, str]] = {
    "/goal": "goal set {chat} TEXT --check COMMAND",
    "/new": "run PROMPT",
    "/export": "show {chat}",
    "/waiting": "actions",
    "/plan": "run --plan PROMPT",
    "/fork": "fork {chat}",
    "/revert": "revert {chat}",
    "/help": "--help",
}


def is_compact(prompt: str) -> bool:
    """Return whether a prompt is the command that summarises the history."""
    return prompt.strip() == COMPACT


def check_prompt(prompt: str, chat: str, hint: Callable[[str], str]) -> None:
    """Refuse a prompt that is a command and no text for a model.

    Args:
        prompt: What would be sent.
        chat: The chat it would be sent to, or `CHAT` for a new one.
        hint: Writes a command line of `parley` as it has to be typed here.

    Raises:
        ConfigurationProblem: it is one; the message says what does the same here.
    """
    word = next(iter(prompt.split(maxsplit=1)), "")
    instead = INSTEAD.get(word)
    if instead is None:
        return
    raise ConfigurationProblem(
        f"{word} is not sent to the model: the command is "
        f"`{hint(instead.format(chat=chat))}`. To send it as text, write something before it"
    )
