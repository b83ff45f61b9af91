"""The tools by which a model finds, makes, starts and stops the workspace of its chat."""

from chatd.tools.lifecycle.tools import TOOLS, LifecycleTools

__all__ = ["TOOLS", "LifecycleTools"]
