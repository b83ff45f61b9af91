"""The preparation of a turn, once, before its first step."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from chatd.chats.domain.chat import Message
from chatd.content.domain.messages import ChatMode, ErrorKind, Role
from chatd.content.domain.parts import File, Part, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.content.domain.tool_servers import ServerReport, ToolServers
from chatd.content.domain.tools import Tools, ToolSpec
from chatd.content.domain.truncation import BUDGET_BYTES_UNKNOWN, result_budget_bytes
from chatd.content.domain.turn_context import Progress, TurnContext
from chatd.files.domain.ports import Files
from chatd.models.domain.language_model import ModelError, ModelRequest
from chatd.models.domain.profile import ModelChoice
from chatd.primitives.domain.ids import MessageId, OwnerId
from chatd.turns.domain.agent_reports import has_agents
from chatd.turns.domain.asking import asking_tools
from chatd.turns.domain.calls import withheld_tools
from chatd.turns.domain.fallbacks import is_taken_over
from chatd.turns.domain.ports import Setups
from chatd.turns.domain.prompt import PromptBuilder
from chatd.turns.domain.steps import StepPolicy, steps_of_turn
from chatd.turns.domain.tool_search import ToolSearchIndex
from chatd.turns.domain.turn import TurnSetup
from chatd.turns.domain.turn_tools import ToolInputs, TurnTools, turn_tools
from chatd.turns.engine.session import Session
from parley.cache import BoundedCache

#: Of users and models whose turns began last; each has the tools of one turn.
TURN_TOOLS_MAX = 256


@dataclass(frozen=True, slots=True)
class PreparedTurn:
    """The setup and the tools of one turn."""

    turn_id: MessageId
    setup: TurnSetup
    context: TurnContext
    tools: tuple[ToolSpec, ...]
    specs: Mapping[str, ToolSpec]
    withheld: Mapping[str, ChatMode]  # Tools that its mode forbids.
    policy: StepPolicy
    notices: tuple[str, ...] = ()  # For the user, about MCP servers.
    search: ToolSearchIndex = field(default_factory=ToolSearchIndex)  # Tools to search for.
    missing: Mapping[str, str] = field(default_factory=dict)  # Why servers lack tools, by slug.

    @property
    def result_budget_bytes(self) -> int:
        """The size limit of one result."""
        return result_budget_bytes(self.setup.model.context_limit_tokens)

    def step_context(self, session: Session, progress: Progress) -> TurnContext:
        """Return the context of the calls of the current step."""
        history, turn_id = session.history, self.turn_id

        def until_answer() -> Sequence[Message]:
            # The model saw everything before its last answer, which is what called the tools.
            seen = list(history.messages)
            while seen and seen[-1].role is not Role.ASSISTANT:
                seen.pop()
            return seen

        def prompt() -> tuple[PromptMessage, ...]:
            return PromptBuilder().of(until_answer()[:-1], self.setup.system_prompt)

        def answer() -> tuple[Part, ...]:
            return tuple(part for message in until_answer()[-1:] for part in message.content)

        def results() -> tuple[ToolResult, ...]:
            parts = (
                part
                for message in history.messages
                if message.id > turn_id
                for part in message.content
            )
            return tuple(part for part in parts if isinstance(part, ToolResult))

        return replace(
            self.context,
            step=steps_of_turn(session.state, history.messages),
            history_version=session.state.history_version,
            prompt=prompt,
            answer=answer,
            results=results,
            progress=progress,
        )

    @staticmethod
    def budget_bytes(prepared: "PreparedTurn | None") -> int:
        """Return the size limit of one result, also for a turn that was not prepared."""
        return BUDGET_BYTES_UNKNOWN if prepared is None else prepared.result_budget_bytes

    async def request(self, session: Session, files: Files) -> ModelRequest:
        """Return the request for the next step, with the files that it refers to."""
        model = self.setup.model
        history = session.history
        messages = history.prompt.of(history.messages, self.setup.system_prompt)
        file_ids = file_ids_of(messages)
        return ModelRequest(
            model.id,
            messages,
            self.search.offered(self.tools, history.messages),
            output_tokens_max=model.output_tokens_max,
            reasoning_effort=model.reasoning_effort,
            files=await files.load(file_ids, session.owner.id) if file_ids else {},
            chat_id=session.chat_id,
            owner_id=session.owner.id,
            attempt=max(1, session.state.generation_attempt),
        )


class KnownTurnTools:
    """Keeps the tools of the newest turn of each user and model: mostly the next one has them too.

    Args:
        derive: Returns the tools that follow from inputs.
    """

    def __init__(self, derive: Callable[[ToolInputs], TurnTools] = turn_tools) -> None:
        self._derive = derive
        self._kept: BoundedCache[tuple[OwnerId, str], tuple[ToolInputs, TurnTools]] = BoundedCache(
            TURN_TOOLS_MAX
        )

    def of(self, owner_id: OwnerId, inputs: ToolInputs) -> TurnTools:
        """Return the tools that follow from these inputs."""
        key = owner_id, inputs.model_name
        kept = self._kept.get(key)
        if kept is not None and kept[0] == inputs:
            return kept[1]
        derived = self._derive(inputs)
        self._kept.put(key, (inputs, derived))
        return derived


async def prepare(
    session: Session,
    setups: Setups,
    tools: Tools,
    servers: ToolServers,
    known: KnownTurnTools,
    steps_max: int,
) -> PreparedTurn:
    """Load the setup and the tools of the current turn.

    Raises:
        ModelError: No model can be used, or an MCP server that is required.
    """
    setup = await setups.prepare(session.chat_id, session.owner, choice_of(session))
    if is_taken_over(session.state, session.history.messages):
        setup = setup.taken_over()
    context = setup.context(
        session.chat_id,
        session.owner,
        turn_id=session.state.turn_id,
        has_agents=has_agents(session.history.messages),
    )
    listed = await tools.list_tools(context)
    reports = await servers.reports(context)
    require_servers(reports)
    if of_workspace := tuple(each.server_id for each in reports if each.is_of_workspace):
        context = replace(context, workspace_server_ids=of_workspace)
    local = (*listed, *asking_tools(context))
    # What a client does with a call is not bounded by a sandbox.
    client = setup.client_tools if setup.mode is ChatMode.ORDINARY else ()
    orders = context.orders
    if orders.tool_names is not None:
        local = tuple([spec for spec in local if orders.may_use(spec.name)])
    inputs = ToolInputs(local, client, setup.model.name, reports, setup.context_limit_tokens)
    derived = known.of(session.owner.id, inputs)
    if text := derived.servers_text:
        setup = replace(setup, system_prompt=replace(setup.system_prompt, tool_servers_text=text))
    policy = StepPolicy(
        context_limit_tokens=inputs.context_limit_tokens,
        threshold_percent=setup.threshold_percent,
        is_final_step_compacted=setup.is_final_step_compacted,
        ending_tools=derived.ending,
        steps_max=steps_max,
        is_attended=setup.is_attended,
    )
    withheld = withheld_tools(setup.mode, derived.offered, setup.client_tools)
    return PreparedTurn(
        session.state.turn_id,
        setup,
        context,
        derived.offered,
        derived.specs,
        withheld,
        policy,
        derived.notices,
        derived.search,
        derived.missing,
    )


def require_servers(reports: Sequence[ServerReport]) -> None:
    """Check the MCP servers without which a turn must not run.

    Raises:
        ModelError: One of them cannot be used.
    """
    for report in reports:
        if report.is_required and report.problem:
            message = f"The MCP server {report.name}, which is required, fails: {report.problem}"
            raise ModelError(ErrorKind.GENERIC, message, is_retryable=True)


def choice_of(session: Session) -> ModelChoice | None:
    """Return the model choice of the message that started the turn; None if it is not known."""
    turn_id = session.state.turn_id
    for message in reversed(session.history.messages):
        if message.id == turn_id:
            return message.choice
    return None


def file_ids_of(messages: Sequence[PromptMessage]) -> tuple[str, ...]:
    """Return the files that a prompt refers to, each once."""
    files = [part for message in messages for part in message.content if isinstance(part, File)]
    return tuple(dict.fromkeys([file.file_id for file in files])) if files else ()
