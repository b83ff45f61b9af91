"""Arguments and specs of the tools for agents."""

from typing import Annotated, Any, Final, Literal

import msgspec

from chatd.content.domain.tools import (
    AGENT_PROCESSES,
    APPLY_CHILD_CHANGES,
    LIST_AGENTS,
    LIST_SUBAGENT_MODELS,
    SPAWN_AGENT,
    WAIT_AGENTS,
    Executor,
    ToolSpec,
)
from chatd.models.domain.profile import ModelChoice, ReasoningEffort
from chatd.tools.workspace.arguments import Input, schema_of
from chatd.tools.workspace.processes import CURSOR_MAX

PROMPT_CHARACTERS_MAX: Final = 100_000
NAME_CHARACTERS_MAX: Final = 80
MODEL_CHARACTERS_MAX: Final = 300
AGENTS_MAX: Final = 100
PATHS_MAX: Final = 1000
LISTED: Final = 10
LISTED_MAX: Final = 50
OFFSET_MAX: Final = 1_000_000
WAIT_S: Final = 300
WAIT_S_MAX: Final = 86_400

_AgentId = Annotated[str, msgspec.Meta(description="The agent_id from spawn_agent or list_agents.")]


class SpawnInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `spawn_agent`."""

    prompt: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=PROMPT_CHARACTERS_MAX,
            description="The whole task: the agent does not see this conversation. Say what it "
            "should report.",
        ),
    ]
    type: Annotated[
        str,
        msgspec.Meta(
            max_length=NAME_CHARACTERS_MAX,
            description="general can do what you can; explore only reads and searches, and "
            "changes nothing; or a type that the workspace describes.",
        ),
    ] = "general"
    name: Annotated[
        str, msgspec.Meta(max_length=NAME_CHARACTERS_MAX, description="A short name for people.")
    ] = ""
    isolation: Annotated[
        Literal["shared", "fork"],
        msgspec.Meta(
            description="shared: it works in your files. fork: it works in a copy of them, and you "
            "take its changes with apply_child_changes; use it for agents that write side by side."
        ),
    ] = "shared"
    model: Annotated[
        str,
        msgspec.Meta(
            max_length=MODEL_CHARACTERS_MAX,
            description="Its model by name, if another one than usual suits the task better.",
        ),
    ] = ""
    reasoning_effort: Annotated[
        Literal["default", "none", "minimal", "low", "medium", "high", "xhigh", "max"],
        msgspec.Meta(
            description="How much it reasons; at most as much as its model can. Leave it out if "
            "the task is not unusual."
        ),
    ] = "default"
    report_schema: Annotated[
        dict[str, Any] | None,
        msgspec.Meta(
            description="A JSON schema of type object for its report, if you want it as JSON; "
            "without references and patterns. A report that does not match is sent back once."
        ),
    ] = None

    @property
    def choice(self) -> ModelChoice:
        """Return the model and the effort that it names."""
        is_default = self.reasoning_effort == "default"
        effort = ReasoningEffort.DEFAULT if is_default else ReasoningEffort(self.reasoning_effort)
        return ModelChoice(self.model.strip(), effort)


class WaitInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `wait_agents`."""

    agent_ids: Annotated[
        tuple[str, ...],
        msgspec.Meta(max_length=AGENTS_MAX, description="Which agents; all of yours if left out."),
    ] = ()
    until: Annotated[
        Literal["any", "all"],
        msgspec.Meta(description="Whether the first that ends is enough."),
    ] = "all"
    timeout_s: Annotated[
        int,
        msgspec.Meta(
            ge=1,
            le=WAIT_S_MAX,
            description=f"Seconds to wait at most, {WAIT_S} if "
            "left out. Running out of time is no failure: you see how far they are.",
        ),
    ] = WAIT_S


class MessageInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `message_agent`."""

    agent_id: _AgentId
    message: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=PROMPT_CHARACTERS_MAX,
            description="What it should do next, or instead.",
        ),
    ]
    interrupt: Annotated[
        bool, msgspec.Meta(description="Whether it stops its present work for the message.")
    ] = False


class InterruptInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `interrupt_agent`."""

    agent_id: _AgentId


class ApplyInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `apply_child_changes`."""

    agent_id: _AgentId
    strategy: Annotated[
        Literal["report", "keep_parent", "take_fork"],
        msgspec.Meta(
            description="If both of you changed the same: report applies nothing and lists the "
            "conflicts, keep_parent keeps your version of these, take_fork takes that of the agent."
        ),
    ] = "report"
    paths: Annotated[
        tuple[str, ...],
        msgspec.Meta(
            max_length=PATHS_MAX,
            description="Files and directories to apply, relative to the workspace; all if left "
            "out.",
        ),
    ] = ()
    dry_run: Annotated[
        bool, msgspec.Meta(description="Whether to show the changes and apply nothing.")
    ] = False


class ListInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `list_agents`."""

    limit: Annotated[
        int,
        msgspec.Meta(ge=1, le=LISTED_MAX, description=f"How many, {LISTED} if left out."),
    ] = LISTED
    offset: Annotated[
        int,
        msgspec.Meta(ge=0, le=OFFSET_MAX, description="How many to leave out before them."),
    ] = 0


class ProcessesInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `agent_processes`."""

    agent_id: _AgentId
    process_id: Annotated[
        str,
        msgspec.Meta(
            max_length=64,
            description="The process whose output to return; leave it out for the list of them.",
        ),
    ] = ""
    since: Annotated[
        int,
        msgspec.Meta(
            ge=0, le=CURSOR_MAX, description="Return output after this cursor; 0 for all of it."
        ),
    ] = 0
    limit: Annotated[
        int, msgspec.Meta(ge=1, le=LISTED_MAX, description=f"How many, {LISTED} if left out.")
    ] = LISTED


class ListModelsInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `list_subagent_models`."""


SPECS: Final = (
    ToolSpec(
        SPAWN_AGENT,
        "Start an agent that works on one task beside you, in the same workspace. It returns at "
        "once; start several to work in parallel, then call wait_agents.",
        schema_of(SpawnInput),
        Executor.CHATD,
        is_serial=True,
    ),
    ToolSpec(
        WAIT_AGENTS,
        "Wait until agents have ended, and read their reports. Costs nothing while it waits.",
        schema_of(WaitInput),
        Executor.CHATD,
        is_serial=True,
    ),
    ToolSpec(
        "message_agent",
        "Send a message to an agent; one that has ended starts again with it, one that works reads "
        "it afterwards. An agent that failed can often go on after a message.",
        schema_of(MessageInput),
        Executor.CHATD,
        is_serial=True,
    ),
    ToolSpec(
        "interrupt_agent",
        "Stop the present work of an agent and of those that it started.",
        schema_of(InterruptInput),
        Executor.CHATD,
        is_serial=True,
    ),
    ToolSpec(
        APPLY_CHILD_CHANGES,
        "Apply the changes of an agent that works in a fork to your files, all or none; or show "
        "them. Commits of the agent are not taken, only its files.",
        schema_of(ApplyInput),
        Executor.CHATD,
        is_serial=True,
    ),
    ToolSpec(
        LIST_AGENTS,
        "List the agents that you started, with their status, model, cost and last report; those "
        "that changed last come first. has_more says that an offset gives others.",
        schema_of(ListInput),
        Executor.CHATD,
    ),
    ToolSpec(
        LIST_SUBAGENT_MODELS,
        "List the models that you can give to spawn_agent, with their windows and reasoning "
        "efforts.",
        schema_of(ListModelsInput),
        Executor.CHATD,
    ),
    ToolSpec(
        AGENT_PROCESSES,
        "Read the processes of an agent: the list of them, running ones first, or the output of "
        "one as it is now. You cannot write to them or end them; message the agent for that.",
        schema_of(ProcessesInput),
        Executor.CHATD,
    ),
)
