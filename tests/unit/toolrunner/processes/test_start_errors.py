"""Why a program never ran, in words that say what to do."""

import errno

from toolrunner.processes.start import start_error_of
from toolrunner.spawner.client.spawner import LaunchFailed


def test_a_workspace_without_a_shell_is_told_with_what_to_do_instead() -> None:
    told = start_error_of(LaunchFailed("exec", errno.ENOENT), "sh", "")
    assert told.startswith("There is no sh here, so no command line can be run. Start a program")


def test_a_program_or_a_directory_that_is_not_there_is_named() -> None:
    program = start_error_of(LaunchFailed("exec", errno.ENOENT), "no-such-one", "")
    assert program.startswith("no-such-one cannot be run: No such file")
    directory = start_error_of(LaunchFailed("workdir", errno.ENOENT), "sh", "src")
    assert directory.startswith("The directory 'src' cannot be entered: No such file")
