"""`parley skill export` and `import` against a scripted gateway."""

from pathlib import Path
from typing import Any

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

SKILLS = "/api/v1/me/skills"


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("skill", *arguments), Invocation(environment, "parley"))


def skill(name: str, body: str | None) -> dict[str, Any]:
    return {"name": name, "description": f"Does: {name}", "body": body, "size_bytes": 3}


def test_skills_are_exported_and_imported_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "skills.zip")
    listed = Answer(200, {"items": [skill("deploy", None), skill("review", None)]})
    read = (Answer(200, skill("deploy", "One.")), Answer(200, skill("review", "Two.")))
    with fake_api(listed, *read, listed, *read) as api:
        assert parley(api, "export", file) == 0
        assert parley(api, "export", file) == 1
    refused = {
        "title": "Invalid",
        "status": 422,
        "code": "INVALID_REQUEST",
        "detail": "It is refused.",
    }
    with fake_api(Answer(422, refused), Answer(200, skill("review", "Two."))) as api:
        assert parley(api, "import", file) == 1
    out, err = capsys.readouterr()

    assert [(each.method, each.path) for each in api.requests] == [
        ("PUT", f"{SKILLS}/deploy"),
        ("PUT", f"{SKILLS}/review"),
    ]
    assert api.requests[1].body == {
        "content": '---\nname: review\ndescription: "Does: review"\n---\nTwo.'
    }
    assert out.splitlines() == [f"Wrote {file}: 2 skills.", "Stored review: Does: review"]
    assert "exists; choose another name" in err
    assert "deploy is refused:" in err
    assert "1 of 2 skills are not stored" in err


def test_one_skill_is_told_in_the_singular(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "skills.zip")
    listed = Answer(200, {"items": [skill("deploy", None)]})
    with fake_api(listed, Answer(200, skill("deploy", "One."))) as api:
        assert parley(api, "export", file) == 0
    assert capsys.readouterr().out == f"Wrote {file}: 1 skill.\n"
