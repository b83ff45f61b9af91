"""Agents as the results of tools describe them."""

from chatd.chats.domain.agents import Agent
from chatd.content.domain.agent_errors import error_fields
from chatd.content.domain.messages import cut_field
from chatd.content.domain.orders import checked_report
from chatd.models.domain.agent_model import AgentModel
from chatd.models.domain.profile import ModelChoice


def agent_view(agent: Agent, model_name: str) -> dict[str, object]:
    """Return an agent as its parent sees it."""
    told: dict[str, object] = {
        "agent_id": agent.chat_id,
        "name": agent.name,
        "type": agent.orders.type_name or ("explore" if agent.is_explorer else "general"),
        "status": agent.status if not agent.is_done else ("failed" if agent.error else "done"),
        **model_fields(model_name, agent.model),
        "cost_micros": agent.cost_micros,
    }
    if agent.is_forked:
        told["isolation"] = "fork"
    if agent.is_done:
        told["version"] = agent.version
        told |= cut_field(agent.finish_reason)
    if agent.is_done and agent.report:
        told |= _report(agent)
    if agent.error is not None:
        told["error"] = error_fields(agent.error)
    return told


def model_fields(name: str, choice: ModelChoice) -> dict[str, object]:
    """Return the model and the effort of an agent, as far as they are chosen."""
    fields: dict[str, object] = {"model": name} if name else {}
    if choice.reasoning_effort:
        fields["reasoning_effort"] = choice.reasoning_effort.value
    return fields


def model_view(model: AgentModel) -> dict[str, object]:
    """Return a model that agents may have, as the model that starts them sees it."""
    told: dict[str, object] = {"model": model.name, "display_name": model.display_name}
    if model.context_limit_tokens:
        told["context_limit_tokens"] = model.context_limit_tokens
    if model.is_default:
        told["is_default"] = True
    if model.reasoning_efforts:
        told["reasoning_efforts"] = [each.value for each in model.reasoning_efforts]
    return told


def _report(agent: Agent) -> dict[str, object]:
    """Return the report as JSON if it has a schema that it matches, and otherwise its text."""
    if not agent.orders.report_schema_json:
        return {"report": agent.report}
    checked = checked_report(agent.report, agent.orders.report_schema_json)
    if checked.problems:
        return {"report": agent.report, "report_problems": list(checked.problems)}
    return {"report": checked.value}
