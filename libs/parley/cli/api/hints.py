"""Names the command that helps after a refusal."""

from collections.abc import Iterator
from contextlib import contextmanager

from parley.cli.api.client import ApiRefused
from parley.cli.errors import CliError
from parley.cli.invocation import current


@contextmanager
def hint_on(code: str, hint: str, command: str) -> Iterator[None]:
    """Append a hint to the message of a refusal; also a decorator of commands.

    Args:
        code: The code of the refusal; others stay as they are.
        hint: What to do, with {} in place of the command.
        command: The command, without the name of the program.

    Raises:
        CliError: the refusal, with the hint.
    """
    try:
        yield
    except ApiRefused as error:
        if error.code != code:
            raise
        named = hint.format(f"`{current().hint(command)}`")
        raise CliError(f"{error.message}; {named}") from error


#: A decorator of commands that take a model.
model_hint = hint_on("MODEL_NOT_FOUND", "{} lists the models", "models ls")
