"""Plays recordings: `python -m chatd.replay FILE...`."""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.language_model import ModelError
from chatd.providers.transport import HttpModels
from chatd.replay.outcome import Outcome
from chatd.replay.playing import NotPlayable, play
from parley.clock import SystemClock

PLAYED, UNPLAYABLE, INTERRUPTED = 0, 1, 130


def main(arguments: Sequence[str]) -> int:
    """Play the files that the arguments name, print a line for each, return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return asyncio.run(_play_all(options.files))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe; without this Python prints a second error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNPLAYABLE


async def _play_all(files: Sequence[str]) -> int:
    code = PLAYED
    clock = SystemClock()
    async with HttpModels(clock) as models:
        for file in files:
            try:
                outcome = await play(Path(file), models, clock)
            except NotPlayable as error:
                outcome = Outcome(
                    error=ModelError(ErrorKind.CONFIG, str(error), is_retryable=False)
                )
                code = UNPLAYABLE
            print(json.dumps(outcome.document(file)), flush=True)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m chatd.replay",
        description="Play recorded answers of providers through the real adapters; prints one "
        "JSON object for each file. Exit code 1 if a file is not a recording.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
