"""Forms of running calls: every field that does not fit is named, with the reason."""

from typing import Any

import pytest

from chatd.actions.domain.forms import form_faults

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "branch": {"type": "string", "enum": ["a", "b"]},
        "depth": {"type": "integer", "minimum": 1, "maximum": 5},
        "a/b~c": {"type": "string", "minLength": 2},
        "is_shallow": {"type": "boolean"},
    },
    "required": ["branch"],
}


def test_all_fields_that_do_not_fit_are_named_at_once() -> None:
    content = {"depth": 9, "a/b~c": "x", "is_shallow": True, "more": 1}
    assert form_faults(SCHEMA, content) == (
        ("content_json#/branch", "is missing"),
        ("content_json#/depth", "is more than 5"),
        ("content_json#/a~1b~0c", "is less than 2 characters"),
        ("content_json#/more", "is not asked for"),
    )


@pytest.mark.parametrize("content", [{"branch": "a"}, {"branch": "b", "depth": 5, "a/b~c": "xy"}])
def test_a_content_that_fits_has_no_faults(content: dict[str, Any]) -> None:
    assert form_faults(SCHEMA, content) == ()
