"""Templates as they are stored."""

from dataclasses import replace

import pytest

from chatd.primitives.domain.errors import NameTaken, VersionConflict
from chatd.primitives.domain.ids import OwnerId
from chatd.workspaces.domain.errors import TemplateNotFound
from chatd.workspaces.domain.ranking import TemplateUsage
from chatd.workspaces.domain.spec import Kind, Source
from chatd.workspaces.domain.templates import SCRATCH_ID, Parameter, Preset
from chatd.workspaces.store.templates import PostgresTemplates
from chatd.workspaces.store.workspaces import PostgresWorkspaces
from parley.clock import SystemClock
from parley.postgres import Pool
from support.chatd.workspaces.stored_workspaces import HASH, IDS, LIMITS, fresh
from support.chatd.workspaces.workspace_values import ANN, template


@pytest.fixture
def store(pool: Pool) -> PostgresWorkspaces:
    return PostgresWorkspaces(pool)


async def test_templates_are_kept_changed_and_forgotten(
    pool: Pool, store: PostgresWorkspaces
) -> None:
    templates = PostgresTemplates(pool)
    group = next(IDS)
    made = template(
        kind=Kind.GIT,
        source=Source(url="https://example.org/{repo}.git", depth=1),
        parameters=(Parameter("repo", is_required=True),),
        presets=(Preset(next(IDS), "usual", True, {"repo": "one"}),),
        group_ids=(group,),
    )
    stored = await templates.create(made, HASH)
    assert replace(stored, created_at=None) == made
    assert await templates.create(made, HASH) == stored
    with pytest.raises(NameTaken):
        await templates.create(replace(made, id=next(IDS)), HASH)
    changed = await templates.update(made.id, lambda old: replace(old, description="new"), 1)
    assert (changed.description, changed.version) == ("new", 2)
    with pytest.raises(VersionConflict):
        await templates.update(made.id, lambda old: old, 1)

    assert await templates.get(made.id, frozenset({group})) == changed
    with pytest.raises(TemplateNotFound):
        await templates.get(made.id, frozenset())
    entries, now = await templates.list(ANN, frozenset())
    assert ([each.name for each, _ in entries], now is not None) == (["scratch"], True)
    now = SystemClock().now()
    for owner_id in (ANN, OwnerId(next(IDS))):
        used = fresh(template_id=SCRATCH_ID, owner_id=owner_id, last_used_at=now)
        await store.add(used, HASH, LIMITS)
    entries, _ = await templates.list(ANN, frozenset({group}))
    habits = {each.name: usage for each, usage in entries}
    assert habits == {"plain": TemplateUsage(), "scratch": TemplateUsage(1, 0, now, 2)}
    await templates.delete(made.id)
    with pytest.raises(TemplateNotFound):
        await templates.get(made.id, frozenset({group}))
