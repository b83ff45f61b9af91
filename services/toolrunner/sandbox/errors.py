"""What speaks against confining.

SandboxError
├── BelowMinimum     the node offers less than it was told to accept
├── NotEnforceable   a call asks for what this level cannot keep
└── LayerFailed      a layer could not be applied, so the program did not run
"""

import os

from toolrunner.sandbox.values import NAMESPACES, Layer, Level, Report


class SandboxError(Exception):
    """The base of these errors."""


class BelowMinimum(SandboxError):
    """The node offers less than it was told to accept.

    Attributes:
        report: What it offers, and what is missing.
    """

    def __init__(self, report: Report) -> None:
        missing = [
            f"{each.layer.word}: {each.cause}; {each.remedy}"
            for each in report.missing
            if each.layer in _NEEDED[report.minimum]
        ]
        because = f" ({'. '.join(missing)})" if missing else ""
        super().__init__(
            f'refusing to run commands: sandbox level "{report.level.word}" is below the minimum '
            f'"{report.minimum.word}"{because}. Remove the cause, or accept less with '
            f"TOOLRUNNER_SANDBOX_MINIMUM={report.level.word}"
        )
        self.report = report


class NotEnforceable(SandboxError):
    """A call asks for what this level cannot keep.

    Attributes:
        level: The level.
        required: The weakest level that could.
        asked: What was asked for.
    """

    def __init__(self, level: Level, required: Level, asked: str) -> None:
        super().__init__(
            f'{asked} cannot be kept at sandbox level "{level.word}"; that needs at least '
            f'"{required.word}"'
        )
        self.level = level
        self.required = required
        self.asked = asked


class LayerFailed(SandboxError):
    """A layer could not be applied, so the program must not run.

    Attributes:
        layer: Which.
        errno: What the kernel said; 0 if it was not the kernel.
    """

    def __init__(self, layer: Layer, errno: int) -> None:
        super().__init__(f"{layer.word}: {os.strerror(errno) if errno else 'a defect'}")
        self.layer = layer
        self.errno = errno


_FILTERS = frozenset({Layer.NO_NEW_PRIVILEGES, Layer.LANDLOCK_FILES, Layer.SECCOMP, Layer.UID})
#: What a missing layer says about a level: only what would help to reach it.
_NEEDED = {
    Level.NONE: frozenset[Layer](),
    Level.UID: frozenset({Layer.UID}),
    Level.LANDLOCK: _FILTERS,
    Level.NS: NAMESPACES | _FILTERS,
    Level.VM: frozenset({Layer.VM}),
}
