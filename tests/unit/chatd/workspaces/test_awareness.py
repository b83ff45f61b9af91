"""What a model is told about its workspace, in the request of every kind of chat."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from chatd.content.domain.messages import ChatMode, Role
from chatd.content.domain.parts import Text
from chatd.models.domain.language_model import Finished, ModelEvent, ModelRequest, TextDelta
from chatd.models.domain.profile import ModelChoice
from chatd.models.store.catalogue import ChatFacts
from chatd.primitives.domain.ids import ChatId, WorkerId
from chatd.turns.engine.setups import ConfiguredSetups
from chatd.workspaces.domain.ports import ChatWorkspace
from chatd.workspaces.domain.spec import Kind
from chatd.workspaces.domain.workspace import State, Workspace, WorkspaceId
from chatd.workspaces.domain.workspace_text import (
    DETACHED,
    DETACHED_CHILD,
    FORKED_CHILD,
    workspace_description,
)
from chatd.workspaces.engine.driver import Driver
from chatd.workspaces.engine.locator import ChatWorkspaceLocator
from chatd.workspaces.engine.node_list import NodeList
from chatd.workspaces.engine.watchers import Changes
from parley.clock import FakeClock
from support.chatd.models.model_catalogue import BOOK, KnownConfiguration, catalogue
from support.chatd.turns.turn_stage import ANN, CHAT, Stage
from support.chatd.workspaces.in_memory_host import InMemoryHost
from support.chatd.workspaces.in_memory_workspaces import InMemoryNodes, InMemoryWorkspaces
from support.chatd.workspaces.workspace_values import NODE, NOON, WORKSPACE, node, workspace

ADDRESS = "unix:/run/node.sock"
PARENT = ChatId("00000000-0000-0000-0000-0000000000c0")
ROOT_FACTS = ChatFacts(ModelChoice(), ChatMode.ORDINARY)
CHILD_FACTS = replace(ROOT_FACTS, ancestor_ids=(PARENT,))
READY = workspace(State.READY)
STOPPED = workspace(State.STOPPED)
SCRATCH = workspace(State.READY, id=WorkspaceId(CHAT), is_scratch_of_chat=True)
FORK = replace(SCRATCH, kind=Kind.FORK, parent_id=PARENT)


@dataclass
class Known:
    """The facts of the only chat."""

    facts: ChatFacts = field(default_factory=lambda: ROOT_FACTS)

    async def chat(self, chat_id: ChatId) -> ChatFacts:
        return self.facts


def answering(request: ModelRequest) -> Iterable[ModelEvent]:
    yield TextDelta("done")
    yield Finished()


def stage_of(facts: ChatFacts, used: Workspace | None) -> Stage:
    """Return a chat whose turns are prepared by the configuration and the locator."""
    clock = FakeClock(NOON)
    store, nodes = InMemoryWorkspaces(clock), InMemoryNodes(clock, {NODE: node()})
    if used is not None:
        store.rows[used.id] = used
    store.chats[CHAT] = ChatWorkspace(
        workspace=used,
        scratch_id=WorkspaceId(facts.ancestor_ids[-1] if facts.is_child else CHAT),
        owner_id=ANN.id,
        is_child=facts.is_child,
        is_bound=bool(facts.workspace_id),
        node_address=ADDRESS,
        is_node_lost=False,
        now=NOON,
    )
    locator = ChatWorkspaceLocator(
        store,
        Known(facts),
        NodeList(nodes, [ADDRESS]),
        Driver(WorkerId("d"), store, nodes, InMemoryHost(), clock),
        Changes(clock),
        clock,
    )
    configuration = KnownConfiguration(catalogue())
    configuration.facts = facts
    return Stage(answering, setups=ConfiguredSetups(configuration, BOOK, locator))


def bound(facts: ChatFacts, **more: Any) -> ChatFacts:
    return replace(facts, workspace_id=WORKSPACE, **more)


@pytest.mark.parametrize(
    ("facts", "used", "expected"),
    [
        (ROOT_FACTS, None, DETACHED),
        (ROOT_FACTS, SCRATCH, DETACHED),
        (CHILD_FACTS, None, DETACHED_CHILD),
        (CHILD_FACTS, replace(SCRATCH, id=WorkspaceId(PARENT)), DETACHED_CHILD),
        (replace(CHILD_FACTS, workspace_id=CHAT), FORK, FORKED_CHILD),
        (bound(ROOT_FACTS), READY, workspace_description(READY, NOON, is_child=False)),
        (bound(ROOT_FACTS), STOPPED, workspace_description(STOPPED, NOON, is_child=False)),
        (CHILD_FACTS, READY, workspace_description(READY, NOON, is_child=True)),
        (CHILD_FACTS, STOPPED, workspace_description(STOPPED, NOON, is_child=True)),
        (bound(ROOT_FACTS, mode=ChatMode.PLAN), READY, None),
        (replace(CHILD_FACTS, mode=ChatMode.EXPLORE), None, DETACHED_CHILD),
    ],
)
async def test_every_request_says_where_the_tools_of_the_chat_work(
    facts: ChatFacts, used: Workspace | None, expected: str | None
) -> None:
    stage = stage_of(facts, used)
    await stage.ask()
    await stage.ask("and now?")
    wanted = expected or workspace_description(READY, NOON, is_child=False)
    for request in stage.model.requests:
        systems = [each for each in request.messages if each.role is Role.SYSTEM]
        assert [each.content for each in systems].count((Text(wanted),)) == 1
        assert request.messages[: len(systems)] == tuple(systems)
    assert len(stage.model.requests) == 2
