from pathlib import Path

import pytest
from click.testing import CliRunner

from parley.cli.accounts.skill import skill
from parley.cli.accounts.skill_archive import name_in


@pytest.mark.parametrize("line", ["name: review", "name:\treview", 'name: "review"', "name:review"])
def test_a_skill_has_the_name_that_its_line_gives(line: str) -> None:
    assert name_in(f"---\n{line}\ndescription: Reviews.\n---\n") == "review"


def test_a_name_that_is_left_empty_is_not_taken_from_the_next_line(tmp_path: Path) -> None:
    file = tmp_path / "SKILL.md"
    file.write_text("---\nname:\ndescription: Reviews.\n---\n", encoding="utf-8")

    result = CliRunner().invoke(skill, ["add", str(file)])

    assert result.exit_code == 2
    assert "has no line with name:" in result.output
