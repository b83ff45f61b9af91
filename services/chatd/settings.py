"""The settings of chatd, all read from variables that start with CHATD_."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chatd.providers.environment import EnvironmentKeys
from parley.egress.policy import Policy
from parley.instance_file import SUFFIX
from parley.process import Environment, ServiceSettings
from parley.rpc import Address
from parley.settings import Secret, setting

#: Each level multiplies what one request of a user can start.
AGENTS_DEPTH_LARGEST: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ServiceSettings):
    """Settings of one chatd process."""

    database_url: Secret = setting("The PostgreSQL database, as the role that owns schema chat.")
    database_connections_max: int = setting(
        "Connections this process opens at most.", default=16, at_least=4
    )
    running_chats_max: int = setting(
        "Chats that this process runs at once.", default=200, at_least=1
    )
    running_chats_per_user_max: int = setting(
        "Chats of one user that run at once; more wait in line.", default=100, at_least=1
    )
    acquire_batch_max: int = setting(
        "Chats without an owner that this process takes at once.", default=10, at_least=1
    )
    lease_s: float = setting(
        "Seconds after which the chats of a process that fell silent go to another.",
        default=15.0,
        at_least=6,
    )
    lease_renew_s: float = setting(
        "Seconds between two renewals of that lease; at most a third of it.",
        default=4.0,
        at_least=0.5,
    )
    instance_file: Path | None = setting(
        "A file of its own, *.instance on a local file system, that this process holds locked. A "
        "chatd that starts in the same directory learns from the locks who has died, and their "
        "chats need not wait for the end of a lease.",
        default=None,
    )
    is_quarantine: bool = setting(
        "Whether this process runs only turns whose processes died twice, one at a time, and ends "
        "when there are none. chatd starts such a process itself when it needs one.",
        default=False,
    )
    live_workspaces_per_user_max: int = setting(
        "Workspaces of one user that are not stopped; 0 for no limit. Scratch directories that "
        "chats get by themselves do not count.",
        default=5,
        at_least=0,
    )
    workspaces_per_user_max: int = setting(
        "Workspaces of one user that keep files; 0 for no limit.", default=20, at_least=0
    )
    new_workspaces_per_user_max: int = setting(
        "Workspaces that one user may create within a minute, also if they are deleted at once, "
        "and starts of stopped ones at this process; 0 for no limit. Scratch directories that "
        "chats get by themselves do not count.",
        default=20,
        at_least=0,
    )
    workspace_disk_bytes_per_user_max: int = setting(
        "Disk that the workspaces of one user may take together before they get no more; 0 for "
        "no limit.",
        default=10 * 1024**3,
        at_least=0,
    )
    master_key_file: Path = setting("The keyring that secrets in the database are sealed with.")
    gateway: tuple[Address, ...] = setting(
        "Addresses of the gateways, which know the revoked service tokens."
    )
    toolrunner: tuple[Address, ...] = setting("Addresses of the toolrunners.")
    mcpgateway: tuple[Address, ...] = setting("Addresses of the mcpgateways.")
    allowed_hosts: Policy = setting(
        "Comma-separated places of hooks that may be private or plain HTTP: HOST:PORT, .SUFFIX of "
        "a domain, or a CIDR such as 10.0.0.0/8.",
        default=Policy(),
    )
    push_allowed_hosts: Policy = setting(
        "Comma-separated places of push services that may be private or plain HTTP, written as "
        "those of hooks. All users can have requests sent there.",
        default=Policy(),
    )
    push_contact: str = setting(
        "A mailto: or https URL of the operator, which push services of browsers get with each "
        "notification; some accept none without it. `parley up` sets a public https URL.",
        default="",
    )
    anthropic_api_key: Secret | None = setting("A key of Anthropic.", default=None)
    anthropic_base_url: str = setting(
        "Where Anthropic is reached, if not at its own address.", default=""
    )
    openai_api_key: Secret | None = setting(
        "A key of OpenAI, or of the endpoint at the base URL.", default=None
    )
    openai_base_url: str = setting(
        "An endpoint that speaks as OpenAI does, with or without a key.", default=""
    )
    azure_openai_api_key: Secret | None = setting("A key of Azure OpenAI.", default=None)
    azure_openai_endpoint: str = setting("The address of the Azure OpenAI resource.", default="")
    openrouter_api_key: Secret | None = setting("A key of OpenRouter.", default=None)
    aws_access_key_id: Secret | None = setting("A key of AWS, for Bedrock.", default=None)
    aws_secret_access_key: Secret | None = setting("The secret that belongs to it.", default=None)
    aws_session_token: Secret | None = setting(
        "The session that belongs to it, if it is a temporary one.", default=None
    )
    aws_region: str = setting("The region of Bedrock.", default="us-east-1")
    model: str = setting(
        "The default model by its name, after its provider's and a slash if need be.", default=""
    )
    model_attempts_max: int = setting(
        "How often a call of a model is tried before its turn ends with an error.",
        default=25,
        at_least=1,
    )
    model_backoff_first_s: float = setting(
        "Seconds to wait after the first failed attempt; twice as long after each further one.",
        default=1.0,
        at_least=0.1,
    )
    model_backoff_max_s: float = setting(
        "The longest such wait in seconds, to which as much again may come by chance.",
        default=60.0,
        at_least=0.1,
    )
    model_hint_max_s: float = setting(
        "Seconds that a provider may ask to wait; if it asks for more, the turn ends.",
        default=600.0,
        at_least=0,
    )
    model_unreachable_max_s: float = setting(
        "Seconds for which a provider is tried that cannot be reached or sends not a single byte.",
        default=180.0,
        at_least=0,
    )
    model_outage_max_s: float = setting(
        "Seconds for which a provider is tried that fails with a status of 500 or more or is "
        "overloaded, together with the time in which calls to it are held back.",
        default=600.0,
        at_least=0,
    )
    model_startup_s: float = setting(
        "Seconds until the first data of an answer, after which the attempt has failed.",
        default=60.0,
        at_least=1,
    )
    model_silence_s: float = setting(
        "Seconds without any data within an answer, after which the attempt has failed.",
        default=600.0,
        at_least=1,
    )
    client_tool_deadline_s: float = setting(
        "Seconds until a call that the client executes is given up.", default=300.0, at_least=1
    )
    question_deadline_s: float = setting(
        "Seconds until a question or a plan that nobody answers is given up; 0 for never.",
        default=0.0,
        at_least=0,
    )
    approval_deadline_s: float = setting(
        "Seconds until a call that nobody allows is refused; 0 for never.",
        default=86_400.0,
        at_least=0,
    )
    agents_depth_max: int = setting(
        "Levels of agents that chats may start below a root chat, at most 3; 0 for no agents.",
        default=1,
        at_least=0,
    )
    agents_per_root_max: int = setting(
        "Agents that a root chat and those below it may start together.", default=100, at_least=1
    )
    agents_cost_micros_max: int = setting(
        "Millionths of a dollar that a root chat and its agents may have cost before it starts no "
        "more agents, sends them no more messages, and those that work stop; 0 for no limit.",
        default=0,
        at_least=0,
    )
    agents_tokens_max: int = setting(
        "Tokens of input and output, cached ones included, that a root chat and its agents may "
        "have used before the same; 0 for no limit.",
        default=0,
        at_least=0,
    )
    agents_duration_s_max: int = setting(
        "Seconds after the message that began the present turn of a root chat, or for an agent "
        "after a later message of a person to it, before the same; 0 for no limit.",
        default=0,
        at_least=0,
    )
    faultpoints_directory: Path | None = setting(
        "For tests of failures, never in production: the directory that arms faults.", default=None
    )

    def __post_init__(self) -> None:
        if self.lease_renew_s * 3 > self.lease_s:
            raise ValueError("CHATD_LEASE_RENEW_S is more than a third of CHATD_LEASE_S: lower it")
        if self.agents_depth_max > AGENTS_DEPTH_LARGEST:
            raise ValueError(
                f"CHATD_AGENTS_DEPTH_MAX is more than {AGENTS_DEPTH_LARGEST}: lower it"
            )
        if self.instance_file is not None and self.instance_file.suffix != SUFFIX:
            raise ValueError(f"CHATD_INSTANCE_FILE does not end with {SUFFIX}: rename it")
        if self.model_backoff_first_s > self.model_backoff_max_s:
            raise ValueError(
                "CHATD_MODEL_BACKOFF_FIRST_S is more than CHATD_MODEL_BACKOFF_MAX_S: lower it"
            )
        if self.faultpoints_directory and self.environment is Environment.PRODUCTION:
            raise ValueError(
                "CHATD_FAULTPOINTS_DIRECTORY is not for production: unset it, or set "
                "CHATD_ENVIRONMENT=development"
            )

    @property
    def environment_keys(self) -> EnvironmentKeys:
        """Return the provider keys that are set in the environment."""
        return EnvironmentKeys(
            anthropic_api_key=self.anthropic_api_key,
            anthropic_base_url=self.anthropic_base_url,
            openai_api_key=self.openai_api_key,
            openai_base_url=self.openai_base_url,
            azure_openai_api_key=self.azure_openai_api_key,
            azure_openai_endpoint=self.azure_openai_endpoint,
            aws_access_key_id=self.aws_access_key_id,
            aws_secret_access_key=self.aws_secret_access_key,
            aws_session_token=self.aws_session_token,
            aws_region=self.aws_region,
            openrouter_api_key=self.openrouter_api_key,
            model=self.model,
        )
