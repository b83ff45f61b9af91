"""Errors of the sandbox.

SandboxError
├── BelowMinimum     the node offers less than the configured minimum
├── NotEnforceable   a call asks for a confinement that this level cannot enforce
└── LayerFailed      a layer could not be applied, so the program was not executed
"""

import os

from toolrunner.sandbox.values import NAMESPACES, Layer, Level, Report


class SandboxError(Exception):
    """The base of these errors."""


class BelowMinimum(SandboxError):
    """The node offers less than the configured minimum.

    Attributes:
        report: The layers that it offers, and those that are missing.
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
    """A call asks for a confinement that this level cannot enforce.

    Attributes:
        level: The level.
        required: The weakest level that can enforce it.
        asked: The requested confinement.
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
        layer: The layer.
        errno: The error of the kernel; 0 if it was another error.
    """

    def __init__(self, layer: Layer, errno: int) -> None:
        super().__init__(f"{layer.word}: {os.strerror(errno) if errno else 'a defect'}")
        self.layer = layer
        self.errno = errno


_FILTERS = frozenset({Layer.NO_NEW_PRIVILEGES, Layer.LANDLOCK_FILES, Layer.SECCOMP, Layer.UID})
#: The missing layers that explain why a level is not reached.
_NEEDED = {
    Level.NONE: frozenset[Layer](),
    Level.UID: frozenset({Layer.UID}),
    Level.LANDLOCK: _FILTERS,
    Level.NS: NAMESPACES | _FILTERS,
    Level.VM: frozenset({Layer.VM}),
}
