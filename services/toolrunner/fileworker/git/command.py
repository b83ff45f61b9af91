"""Execution of git in an untrusted repository.

Theory: git runs only programs that its configuration names. It gets only our configuration: the
common directory of the repository is replaced by our own, with the few settings that say how files
are stored, links to the references, and neither hooks nor attributes that we have not written.
Filters in the attributes of a work tree then name programs that are not defined. No process of the
workspace can interfere, since the repository's own configuration is read once and by value.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Final

from toolrunner.filesystem import errors
from toolrunner.fileworker.git import configuration
from toolrunner.fileworker.git.repositories import RepositoryPaths
from toolrunner.fileworker.jobs import Readable

READ_BYTES: Final = 256 * 1024
OUTPUT_BYTES_MAX: Final = 16 * 1024 * 1024
CONFIG_BYTES_MAX: Final = 1024 * 1024
ERROR_BYTES_MAX: Final = 4096
PROBLEM_CHARACTERS_MAX: Final = 400

#: No prompts, no fetches, and no lock only to refresh the index.
ENVIRONMENT: Final[Mapping[str, str]] = {
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "Parley",
    "GIT_AUTHOR_EMAIL": "parley@localhost",
    "GIT_COMMITTER_NAME": "Parley",
    "GIT_COMMITTER_EMAIL": "parley@localhost",
    "LC_ALL": "C",
}
#: Set again on the command line, in case a version of git reads them from elsewhere.
SAFE: Final = (
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.logAllRefUpdates=false"),
    *("-c", "core.quotePath=false"),
    *("-c", "advice.addEmbeddedRepo=false"),
    *("-c", "diff.external="),
    *("-c", "gc.auto=0"),
    *("-c", "protocol.allow=never"),
    *("-c", "safe.directory=*"),
    *("-c", "submodule.recurse=false"),
)
#: Takes precedence over any file in the work tree: every file is stored byte by byte.
EXACT_ATTRIBUTES: Final = b"* -text -ident !eol !filter !working-tree-encoding\n"
_LINKED: Final = ("refs", "packed-refs", "reftable", "shallow", "worktrees")
_SIGNED: Final = ("config", "config.worktree")


@dataclass(frozen=True, slots=True)
class GitResult:
    """The result of a git command."""

    code: int
    output: bytes
    error: str


@dataclass(frozen=True, slots=True)
class Known:
    """The settings of a repository.

    Attributes:
        signature: Changes with the files that they were read from.
        settings: All of them.
        common: The directory that git uses as the common directory.
        exact: The same, for storing files byte by byte.
    """

    signature: tuple[object, ...]
    settings: configuration.Settings
    common: Path
    exact: Path


Running = Generator[Readable, None, GitResult]


@dataclass
class Git:
    """Runs git, for one thread.

    Attributes:
        program: Its path; empty if there is none.
        environment: Additional variables.
        directory: The directory for its temporary files.
        runs: How often it was started.
    """

    program: str
    environment: Mapping[str, str]
    directory: Path
    runs: int = 0
    _own: Path | None = None
    _known: dict[Path, Known] = field(default_factory=dict)

    def close(self) -> None:
        """Remove the temporary files."""
        if self._own is not None:
            shutil.rmtree(self._own, ignore_errors=True)

    def own(self) -> Path:
        """Return a private temporary directory."""
        if self._own is None:
            self._own = Path(tempfile.mkdtemp(prefix="git-", dir=self.directory))
        return self._own

    def known(
        self, repository_paths: RepositoryPaths, until_s: float
    ) -> Generator[Readable, None, Known]:
        """Return a repository's settings, read again if they have changed.

        Raises:
            FileRefused: They cannot be read.
        """
        signature = tuple(_signature(repository_paths, name) for name in _SIGNED)
        known = self._known.get(repository_paths.git)
        if known is None or known.signature != signature:
            settings = yield from self._settings(
                repository_paths.common / "config", repository_paths, until_s
            )
            if configuration.is_true(
                configuration.last_value(settings, "extensions.worktreeconfig")
            ):
                more = yield from self._settings(
                    repository_paths.git / "config.worktree", repository_paths, until_s
                )
                settings = [*settings, *more]
            known = self._made(repository_paths, signature, settings)
            self._known[repository_paths.git] = known
        return known

    def run(
        self,
        repository_paths: RepositoryPaths,
        arguments: Sequence[str],
        until_s: float,
        *,
        index: Path | None = None,
        is_exact: bool = False,
        input: bytes = b"",
        take: Callable[[bytes], bool] | None = None,
    ) -> Running:
        """Run git in a repository.

        Args:
            repository_paths: The repository.
            arguments: The command and its options.
            until_s: The deadline, by the monotonic clock.
            index: Another index than the repository's.
            is_exact: Whether files are stored byte by byte.
            input: Its standard input.
            take: Called with the output instead of returning it; false ends the run.

        Raises:
            FileRefused: It takes too long, or there is no git.
        """
        known = yield from self.known(repository_paths, until_s)
        variables = {
            "GIT_DIR": str(repository_paths.git),
            "GIT_COMMON_DIR": str(known.exact if is_exact else known.common),
            "GIT_OBJECT_DIRECTORY": str(repository_paths.common / "objects"),
            "GIT_WORK_TREE": str(repository_paths.files),
            **({"GIT_INDEX_FILE": str(index)} if index else {}),
        }
        command = (*SAFE, *arguments)
        ran = yield from self._run(command, repository_paths.files, variables, until_s, input, take)
        return replace(ran, error=self._shown(ran.error, repository_paths))

    def output(
        self,
        repository_paths: RepositoryPaths,
        arguments: Sequence[str],
        until_s: float,
        *,
        index: Path | None = None,
        is_exact: bool = False,
        input: bytes = b"",
    ) -> Generator[Readable, None, bytes]:
        """Return the output of git.

        Raises:
            FileRefused: It fails, takes too long, or there is none.
        """
        ran = yield from self.run(
            repository_paths, arguments, until_s, index=index, is_exact=is_exact, input=input
        )
        if ran.code != 0:
            raise failed(repository_paths.directory, ran.error)
        return ran.output

    def _settings(
        self, path: Path, repository_paths: RepositoryPaths, until_s: float
    ) -> Generator[Readable, None, list[tuple[str, str]]]:
        if not path.is_file():
            return []
        if path.stat().st_size > CONFIG_BYTES_MAX:
            raise failed(repository_paths.directory, "its configuration is too large")
        # Outside of every repository, so that none is searched.
        variables = {"GIT_DIR": os.devnull}
        arguments = ("config", f"--file={path}", "--no-includes", "--list", "-z")
        ran = yield from self._run(arguments, Path("/"), variables, until_s, b"", None)
        if ran.code != 0:
            raise failed(repository_paths.directory, self._shown(ran.error, repository_paths))
        return configuration.parse_list(ran.output)

    def _shown(self, error: str, repository_paths: RepositoryPaths) -> str:
        """Return what git printed, with paths relative to the workspace."""
        if not error:
            return error
        root = repository_paths.root
        names = {f"{root}/": "", str(root): "."}
        if self._own is not None:
            names[f"{self._own}/"] = ""
        if (known := self._known.get(repository_paths.git)) is not None:
            common = str(repository_paths.common.relative_to(root))
            names |= {str(known.common): common, str(known.exact): common}
        for path in sorted(names, key=len, reverse=True):
            error = error.replace(path, names[path])
        return error

    def _made(
        self,
        repository_paths: RepositoryPaths,
        signature: tuple[object, ...],
        settings: configuration.Settings,
    ) -> Known:
        made = []
        kept = configuration.kept(settings)
        for attributes in (b"", EXACT_ATTRIBUTES):
            directory = Path(tempfile.mkdtemp(prefix="common-", dir=self.own()))
            used = configuration.whole(kept) if attributes else kept
            (directory / "config").write_bytes(configuration.written(used))
            for name in _LINKED:
                (directory / name).symlink_to(repository_paths.common / name)
            (directory / "info").mkdir()
            (directory / "info" / "exclude").symlink_to(
                repository_paths.common / "info" / "exclude"
            )
            if attributes:
                (directory / "info" / "attributes").write_bytes(attributes)
            made.append(directory)
        return Known(signature, settings, *made)

    def _run(
        self,
        arguments: Sequence[str],
        directory: Path,
        variables: Mapping[str, str],
        until_s: float,
        input: bytes,
        take: Callable[[bytes], bool] | None,
    ) -> Running:
        if not self.program:
            raise failed("", "there is no git on this node")
        self.runs += 1
        with tempfile.TemporaryFile(dir=self.own()) as stderr, _source(input, self.own()) as source:
            child = subprocess.Popen(
                [self.program, "--no-pager", *arguments],
                cwd=directory,
                env={**self.environment, **ENVIRONMENT, **variables},
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
            with child:
                try:
                    output = yield from _read(child, until_s, take or _Kept())
                    code = child.wait()
                finally:
                    if child.returncode is None:
                        child.kill()
                        child.wait()
            return GitResult(code, output, _tail(stderr))


@dataclass
class _Kept:
    """Collects output, up to a limit."""

    data: bytearray = field(default_factory=bytearray)

    def __call__(self, data: bytes) -> bool:
        self.data += data
        return len(self.data) <= OUTPUT_BYTES_MAX


def failed(path: str, problem: str) -> errors.FileRefused:
    """Return the error for a failed git command."""
    brief = problem.strip()[:PROBLEM_CHARACTERS_MAX] or "it said nothing"
    text = f"git cannot do this: {brief}; look at the repository with git itself"
    return errors.FileRefused(errors.Reason.GIT_FAILED, text, path=path, problem=brief)


def _read(
    child: "subprocess.Popen[bytes]", until_s: float, take: Callable[[bytes], bool]
) -> Generator[Readable, None, bytes]:
    assert child.stdout is not None, "it has a pipe"
    fd = child.stdout.fileno()
    while True:
        yield Readable(fd, until_s)
        if time.monotonic() >= until_s:
            raise failed("", "it takes too long")
        data = os.read(fd, READ_BYTES)
        if not data:
            break
        if not take(data):
            child.kill()
            if isinstance(take, _Kept):
                raise failed("", "there is too much to tell")
            break
    return bytes(take.data) if isinstance(take, _Kept) else b""


def _tail(stderr: IO[bytes]) -> str:
    stderr.seek(0)
    return stderr.read(ERROR_BYTES_MAX).decode(errors="replace")


def _source(data: bytes, directory: Path) -> IO[bytes]:
    if not data:
        return open(os.devnull, "rb")
    source = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 (the caller closes it)
    source.write(data)
    source.seek(0)
    return source


def _signature(repository_paths: RepositoryPaths, name: str) -> object:
    path = (repository_paths.common if name == "config" else repository_paths.git) / name
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns)
