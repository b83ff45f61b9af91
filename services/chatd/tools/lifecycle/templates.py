"""The tools with which a model finds templates of workspaces."""

from typing import Annotated, Final

from msgspec import Meta

from chatd.content.domain.tools import Execution, Outcome
from chatd.tools.lifecycle.control import Control, LifecycleTool, stated, template_id_of
from chatd.tools.workspace.arguments import Input
from chatd.tools.workspace.results import succeeded
from chatd.workspaces.domain.ranking import Ranked
from chatd.workspaces.domain.templates import Parameter

TEMPLATES_PER_PAGE: Final = 10
DESCRIPTION_CHARACTERS: Final = 200
EXCERPT_CHARACTERS: Final = 1000
README_CHARACTERS: Final = 8000

LIST_DESCRIPTION: Final = (
    "List the templates that workspaces can be made from, best match first. Follow next_step of "
    "the result. Only needed when the work needs a repository or a prepared environment."
)
READ_DESCRIPTION: Final = (
    "Read one template: its readme, the parameters it takes and its presets. Do this before "
    "create_workspace unless it has no parameters."
)


class ListTemplatesInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `list_templates`."""

    query: Annotated[str, Meta(max_length=200, description="Words to look for; left out: all.")] = (
        ""
    )
    page: Annotated[int, Meta(ge=1, le=1000, description="Page of ten, from 1.")] = 1


class ReadTemplateInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `read_template`."""

    template_id: Annotated[str, Meta(max_length=64, description="Id from list_templates.")]


async def list_templates(
    control: Control, execution: Execution, given: ListTemplatesInput
) -> Outcome:
    """Return a page of templates with a hint for the next step."""
    ranking = await control.list_templates(execution.owner.id, given.query, for_agents=True)
    first = (given.page - 1) * TEMPLATES_PER_PAGE
    shown = ranking.entries[first : first + TEMPLATES_PER_PAGE]
    has_more = first + TEMPLATES_PER_PAGE < len(ranking.entries)
    return succeeded(
        {
            "templates": [_summary(each) for each in shown],
            "page": given.page,
            **({"next_page": given.page + 1} if has_more else {}),
            **(
                {"recommended_template_id": ranking.recommended_id}
                if ranking.recommended_id
                else {}
            ),
        },
        next_step=ranking.next_step,
    )


async def read_template(
    control: Control, execution: Execution, given: ReadTemplateInput
) -> Outcome:
    """Return a template with its parameters and presets."""
    template = await control.template(execution.owner.id, template_id_of(given.template_id))
    fields = {
        "template": {
            "id": template.id,
            "name": template.name,
            "kind": template.kind.value,
            **stated("display_name", template.display_name),
            **stated("description", template.description),
            **stated("readme", template.readme[:README_CHARACTERS]),
        },
        "parameters": [_parameter(each) for each in template.parameters],
        "presets": [
            {
                "id": each.id,
                "name": each.name,
                "default": each.is_default,
                "parameters": dict(each.parameters),
            }
            for each in template.presets
        ],
    }
    step = "Call create_workspace with this template_id and the parameters that are required."
    return succeeded(fields, next_step=step)


def _summary(entry: Ranked) -> dict[str, object]:
    template, usage = entry.template, entry.usage
    used_at = usage.last_used_at
    return {
        "id": template.id,
        "name": template.name,
        "kind": template.kind.value,
        **stated("display_name", template.display_name),
        **stated("description", template.description[:DESCRIPTION_CHARACTERS]),
        **stated("active_developers", usage.active_users),
        **stated("your_workspace_count", usage.live),
        **stated("last_used_by_you", "" if used_at is None else used_at.isoformat()),
        **stated("readme_excerpt", template.readme[:EXCERPT_CHARACTERS]),
        "has_parameters": bool(template.parameters),
    }


def _parameter(parameter: Parameter) -> dict[str, object]:
    return {
        "name": parameter.name,
        "type": parameter.type.value,
        "required": parameter.is_required,
        "mutable": parameter.is_mutable,
        **stated("description", parameter.description),
        **stated("default", parameter.default_value),
        **stated("options", list(parameter.options)),
        **stated("pattern", parameter.pattern),
    }


FINDING: Final = (
    LifecycleTool("list_templates", LIST_DESCRIPTION, ListTemplatesInput, list_templates),
    LifecycleTool("read_template", READ_DESCRIPTION, ReadTemplateInput, read_template),
)
