"""Models are offered the manner of editing that they were trained on."""

import pytest

from chatd.content.domain.tools import EditStyle, Executor, ToolSpec, edit_style_of
from chatd.turns.domain.calls import offered_tools

SHELL = ToolSpec("execute", "", "{}", Executor.TOOLRUNNER)
EDIT = ToolSpec("edit_files", "", "{}", Executor.TOOLRUNNER, edit_style=EditStyle.REPLACEMENT)
PATCH = ToolSpec("apply_patch", "", "{}", Executor.TOOLRUNNER, edit_style=EditStyle.PATCH)


@pytest.mark.parametrize(
    "name",
    [
        "gpt-5",
        "gpt-5-mini",
        "gpt-5.1",
        "gpt-5.2-codex",
        "gpt-5-2025-08-07",
        "GPT-5-Codex",
        "openai/gpt-5",
        "openai/gpt-5.1-codex-mini:free",
        "codex-mini-latest",
        "us.openai.gpt-5-pro",
    ],
)
def test_models_that_know_patches_get_patches(name: str) -> None:
    assert edit_style_of(name) is EditStyle.PATCH


@pytest.mark.parametrize(
    "name",
    [
        "",
        "gpt-4o",
        "gpt-50",
        "not-gpt-5",
        "claude-sonnet-4-5",
        "openai/gpt-oss-120b",
        "o3",
        "codexample",
        "scripted",
    ],
)
def test_other_models_get_replacements(name: str) -> None:
    assert edit_style_of(name) is EditStyle.REPLACEMENT


def test_a_turn_offers_one_manner_of_editing() -> None:
    local = (SHELL, EDIT, PATCH)
    assert offered_tools(local, (), "gpt-5") == (SHELL, PATCH)
    assert offered_tools(local, (), "claude-opus-4-1") == (SHELL, EDIT)
    assert offered_tools(local, ()) == (SHELL, EDIT)
