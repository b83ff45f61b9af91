"""Which node a workspace goes to."""

import pytest

from chatd.workspaces.domain.errors import NoNode
from chatd.workspaces.domain.nodes import (
    Capacity,
    Directory,
    Load,
    Need,
    Node,
    NodeState,
    choose,
    fullness,
)
from chatd.workspaces.domain.spec import Kind
from chatd.workspaces.domain.workspace import NodeId
from support.chatd.workspaces.workspace_values import node

SCRATCH = Need(Kind.SCRATCH)
URL = "https://example.org/one.git"
GB = 1 << 30


def named(name: str, placed: int = 0, **values: object) -> Node:
    return node(id=NodeId(name), placed=placed, **values)


def test_the_least_loaded_node_gets_it() -> None:
    nodes = [named("a", 3), named("b", 1), named("c", 2)]
    assert choose(nodes, SCRATCH).id == "b"
    assert choose([named("b"), named("a")], SCRATCH).id == "a"


def test_a_node_is_as_full_as_what_it_is_fullest_of() -> None:
    starved = named("a", load=Load(memory_bytes=7 * GB, disk_free_bytes=100 * GB))
    assert fullness(starved) == 7 / 8
    assert choose([starved, named("b", 8)], SCRATCH).id == "b"


def test_placements_that_a_node_has_not_told_of_count_already() -> None:
    nodes = [named("a", 0), named("b", 0)]
    placed = {"a": 0, "b": 0}
    for _ in range(10):
        chosen = choose([named(each.id, placed[each.id]) for each in nodes], SCRATCH)
        placed[chosen.id] += 1
    assert placed == {"a": 5, "b": 5}


def test_a_mirror_is_worth_a_somewhat_fuller_node() -> None:
    git = Need(Kind.GIT, url=URL)
    with_mirror = named("a", 2, mirrors=(URL,))
    assert choose([with_mirror, named("b", 0)], git).id == "a"
    assert choose([with_mirror, named("b", 0)], SCRATCH).id == "b"
    assert choose([named("a", 5, mirrors=(URL,)), named("b", 0)], git).id == "b"


@pytest.mark.parametrize(
    ("only", "need", "cause"),
    [
        (named("a", state=NodeState.DRAINING), SCRATCH, "away or being taken out"),
        (named("a", state=NodeState.LOST), SCRATCH, "away or being taken out"),
        (named("a", 10), SCRATCH, "all are full"),
        (named("a", load=Load(disk_free_bytes=1)), SCRATCH, "disks are full"),
        (named("a", load=Load(problem="no")), SCRATCH, "cannot run commands now"),
        (named("a"), Need(Kind.SCRATCH, sandbox_minimum="ns"), "level ns or better"),
        (named("a"), Need(Kind.LOCAL, directory="home"), "offers the directory home"),
        (named("a"), Need(Kind.FORK, near=NodeId("b")), "has what it is made from"),
    ],
)
def test_a_node_that_cannot_have_it_is_not_chosen_and_the_refusal_says_why(
    only: Node, need: Need, cause: str
) -> None:
    with pytest.raises(NoNode) as refused:
        choose([only], need)
    assert cause in refused.value.cause


def test_a_node_that_cannot_run_commands_comes_after_all_others_that_wait() -> None:
    broken = named("a", load=Load(disk_free_bytes=GB, problem="not run within 10 s"))
    patient = Need(Kind.SCRATCH, is_patient=True)
    assert choose([broken, named("b", 9)], SCRATCH).id == "b"
    assert choose([broken, named("b", 12)], patient).id == "b"
    assert choose([broken], patient).id == "a"


def test_without_nodes_the_refusal_says_to_start_one() -> None:
    with pytest.raises(NoNode) as refused:
        choose([], SCRATCH)
    assert refused.value.cause == "none is known; start a toolrunner"


def test_a_directory_is_offered_under_an_overlay_or_not() -> None:
    only_overlay = named("a", directories=(Directory("home", True, True),))
    plain = named("b", directories=(Directory("home"),))
    over = Need(Kind.LOCAL, directory="home", is_overlay=True)
    assert choose([only_overlay, plain], over).id == "a"
    assert choose([only_overlay, plain], Need(Kind.LOCAL, directory="home")).id == "b"


def test_a_node_that_failed_to_make_it_comes_last() -> None:
    avoiding = Need(Kind.SCRATCH, avoid=frozenset({NodeId("a")}))
    assert choose([named("a", 0), named("b", 9)], avoiding).id == "b"
    assert choose([named("a", 0)], avoiding).id == "a"


def test_a_node_of_the_settings_is_taken_at_its_word() -> None:
    static = Node(NodeId("s"), "unix:/s", is_static=True, capacity=Capacity())
    assert choose([static], Need(Kind.LOCAL, "ns", directory="home")).id == "s"
