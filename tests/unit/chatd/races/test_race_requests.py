"""Requests for races: all of their problems are in one answer."""

from typing import Any

import pytest

from chatd.chats.rpc.defaults import ConfiguredDefaults
from chatd.chats.rpc.references import NO_WORKSPACE, OwnWorkspace, References
from chatd.primitives.domain.errors import InvalidRequest, UnknownIds, WorkspaceNotFound
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.races.domain.race import NewRace
from chatd.races.rpc.requests import RaceRequests
from parley.api.chat.v1 import race_service_pb2 as api
from support.chatd.chats.known_servers import KnownServers
from support.chatd.models.model_catalogue import KnownConfiguration, catalogue
from support.chatd.users.fixed_users import KnownGrantees

ANN = Owner(OwnerId("00000000-0000-0000-0000-0000000000a1"), "member")
RACE = ChatId("00000000-0000-0000-0000-000000000001")
ABSENT = "00000000-0000-0000-0000-0000000000f7"
TWICE = "names a model twice; name each once"


class NoWorkspaces:
    """Workspaces of users who have none."""

    async def own(self, workspace_id: str, owner_id: OwnerId) -> OwnWorkspace:
        """Raise that there is none."""
        raise WorkspaceNotFound(workspace_id)


async def race_of(**given: Any) -> NewRace:
    references = References(NoWorkspaces(), KnownServers(), KnownGrantees())
    requests = RaceRequests(references, ConfiguredDefaults(KnownConfiguration(catalogue())))
    whole: dict[str, Any] = {"prompt": "Write.", "models": ["sonnet", "opus"], **given}
    return await requests.race_of(api.CreateRaceRequest(**whole), RACE, ANN, ())


async def test_models_are_found_by_id_and_by_name() -> None:
    race = await race_of(models=[" sonnet ", "claude-opus-9"], check_command=" make test ")
    assert [(each.model, each.model_id) for each in race.candidates] == [
        ("sonnet", "sonnet"),
        ("claude-opus-9", "opus"),
    ]
    assert (race.prompt, race.check_command) == ("Write.", "make test")


async def test_all_problems_of_a_race_are_in_one_answer() -> None:
    models = ["sonnet", "absent", " ", "sonnet", "claude-sonnet-9"]
    with pytest.raises(InvalidRequest) as refused:
        await race_of(prompt=" \n", models=models, workspace_id=ABSENT)
    assert refused.value.faults == (
        ("prompt", "is blank; say what the models should do"),
        ("models[1]", "names 'absent', which is no usable model; choose one of the list"),
        ("models[2]", "is blank; choose one of the list of models"),
        ("models[3]", TWICE),
        ("models[4]", TWICE),
        ("workspace_id", NO_WORKSPACE),
    )


async def test_an_unknown_workspace_alone_is_an_unknown_id() -> None:
    with pytest.raises(UnknownIds) as refused:
        await race_of(workspace_id=ABSENT)
    assert refused.value.problems == {"workspace_id": NO_WORKSPACE}
