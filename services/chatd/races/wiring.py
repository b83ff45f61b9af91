"""Wiring of the slice `races`."""

from chatd.chats.domain.prompt_hooks import PromptHooks
from chatd.chats.rpc.admission import Admission, SpendAdmission
from chatd.chats.rpc.defaults import ConfiguredDefaults
from chatd.chats.rpc.references import References
from chatd.chats.wiring import ChatComponents
from chatd.content.domain.tools import Tools
from chatd.models.wiring import ModelComponents
from chatd.races.engine.races import RacePorts, Races
from chatd.races.rpc.servicer import RaceServicer, RaceServicerPorts
from chatd.races.store.races import PostgresRaces
from chatd.resources import Resources
from chatd.users.domain.groups import Groups
from chatd.workspaces.wiring import WorkspaceComponents
from parley.tasks import Shielding


def open_races(
    resources: Resources,
    chats: ChatComponents,
    catalogue: ModelComponents,
    workspaces: WorkspaceComponents,
    *,
    tools: Tools,
    spending: SpendAdmission,
    groups: Groups,
    references: References,
    tasks: Shielding,
    hooks: PromptHooks,
) -> RaceServicer:
    """Return the servicer of races."""
    store = PostgresRaces(resources.pool)
    defaults = ConfiguredDefaults(catalogue.configuration)
    races = Races(
        RacePorts(
            store=store,
            forks=workspaces.forks,
            tools=tools,
            complete=defaults.complete,
            apply=chats.chats.apply,
            started=chats.chats.publish_state,
            grown=catalogue.chat_changed,
            tasks=tasks,
        )
    )
    return RaceServicer(
        RaceServicerPorts(
            races=races,
            store=store,
            admission=Admission(spending, groups, chats.stores.keys),
            references=references,
            defaults=defaults,
            ownership=chats.stores.ownership,
            hooks=hooks,
        )
    )
