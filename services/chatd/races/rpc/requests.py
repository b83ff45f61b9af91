"""Checks requests for races: one answer has all of their problems."""

from collections.abc import Sequence
from dataclasses import dataclass

from chatd.chats.rpc.content import title_of
from chatd.chats.rpc.defaults import Defaults
from chatd.chats.rpc.reference_checks import ReferenceChecks
from chatd.chats.rpc.references import References
from chatd.content.domain.parts import Text
from chatd.models.domain.errors import ModelNotFound
from chatd.models.domain.profile import ModelChoice
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.primitives.rpc import fields
from chatd.races.domain.race import NewRace
from chatd.races.engine.races import candidates_of
from parley.api.chat.v1 import race_service_pb2 as api


@dataclass(frozen=True, slots=True)
class RaceRequests:
    """Converts requests for races.

    Attributes:
        references: Rejects workspaces that do not exist.
        defaults: Finds models.
    """

    references: References
    defaults: Defaults

    async def race_of(
        self,
        request: api.CreateRaceRequest,
        race_id: ChatId,
        owner: Owner,
        group_ids: tuple[str, ...],
    ) -> NewRace:
        """Return the requested race.

        Raises:
            InvalidRequest: The task is blank, or models are unknown or named twice; it also has the
                problem of the workspace.
            UnknownIds: There is no such workspace.
        """
        checks = ReferenceChecks()
        if not request.prompt.strip():
            checks.refuse("prompt", "is blank; say what the models should do")
        workspace_id = fields.optional_uuid(request.workspace_id, "workspace_id")
        check = self.references.require_workspace(workspace_id, owner.id, "workspace_id")
        await checks.run(check, None)
        names = [name.strip() for name in request.models]
        ids: list[str] = []
        for index, name in enumerate(names):
            ids.append(await self._model_id(name, f"models[{index}]", ids, checks))
        checks.finish()
        return NewRace(
            race_id,
            owner,
            request.prompt,
            title_of((Text(request.prompt),)),
            candidates_of(race_id, list(zip(names, ids, strict=True))),
            request.check_command.strip(),
            workspace_id,
            group_ids,
        )

    async def _model_id(
        self, name: str, field: str, before: Sequence[str], checks: ReferenceChecks
    ) -> str:
        """Return the id of a model; empty if it cannot race, and then the checks have the fault."""
        if not name:
            checks.refuse(field, "is blank; choose one of the list of models")
            return ""
        try:
            model_id = (await self.defaults.choice(ModelChoice(name))).model_id
        except ModelNotFound:
            problem = f"names {name[:100]!r}, which is no usable model; choose one of the list"
            checks.refuse(field, problem)
            return ""
        if model_id in before:
            checks.refuse(field, "names a model twice; name each once")
        return model_id
