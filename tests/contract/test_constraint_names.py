"""Names of constraints are typed in migrations only; scripts/constraints.py writes the rest."""

import ast
from pathlib import Path

import pytest

import chatd.primitives.store.constraints
import gateway.constraints
import mcpgateway.servers.constraints
from support.source.modules import nodes_of, shipped_modules

MODULES = {
    "chatd": chatd.primitives.store.constraints,
    "gateway": gateway.constraints,
    "mcpgateway": mcpgateway.servers.constraints,
}


@pytest.mark.parametrize("service", MODULES)
def test_no_name_of_a_constraint_is_typed_by_hand(service: str) -> None:
    names = set(MODULES[service].Constraint)
    assert [
        f"{path}:{node.lineno}"
        for path in shipped_modules()
        if path.is_relative_to(Path("services") / service) and path.name != "constraints.py"
        for node in nodes_of(path)
        if isinstance(node, ast.Constant) and node.value in names
    ] == []
