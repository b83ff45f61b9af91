"""The tools with which a model finds, creates, starts and stops the workspace of its chat."""

from chatd.tools.lifecycle.tools import TOOLS, LifecycleTools

__all__ = ["TOOLS", "LifecycleTools"]
