"""The handlers of all git requests of one workspace."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import assert_never

from toolrunner.filesystem.beneath import Root
from toolrunner.fileworker.git import protocol
from toolrunner.fileworker.git.checkpoints import create_checkpoint, list_checkpoints
from toolrunner.fileworker.git.command import Git
from toolrunner.fileworker.git.diff import read_diff
from toolrunner.fileworker.git.restore import restore_checkpoint
from toolrunner.fileworker.git.status import find_statuses
from toolrunner.fileworker.git.watch import Follower
from toolrunner.fileworker.jobs import Pause, Readable


@dataclass(frozen=True, slots=True)
class GitHandlers:
    """The repositories beneath one root; for one thread."""

    root: Root
    git: Git

    def work(
        self, request: protocol.GitRequest
    ) -> Generator[Readable | Pause | protocol.GitAnswer, None, protocol.GitAnswer]:
        """Execute a request; yields parts of streams, and pauses.

        Raises:
            FileRefused: It is refused.
        """
        match request:
            case protocol.GitStatus(directory, timeout_s):
                found = yield from find_statuses(self.git, self.root, directory, timeout_s)
                return protocol.Repositories(found)
            case protocol.GitDiff():
                return (yield from read_diff(self.git, self.root, request))
            case protocol.WatchGit():
                return (yield from Follower(self.git, self.root, request).follow())
            case protocol.CreateCheckpoint():
                return (yield from create_checkpoint(self.git, self.root, request))
            case protocol.ListCheckpoints():
                return (yield from list_checkpoints(self.git, self.root, request))
            case protocol.RestoreCheckpoint():
                return (yield from restore_checkpoint(self.git, self.root, request))
            case _:
                assert_never(request)

    def close(self) -> None:
        """Remove the temporary files."""
        self.git.close()
