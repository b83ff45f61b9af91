"""The problem codes of workspaces and MCP servers: their meaning and remedy."""

from collections.abc import Mapping

from gateway.http.problems.reasons import ReasonText

WORKSPACE_REASONS: Mapping[str, ReasonText] = {
    "WORKSPACE_NOT_FOUND": ReasonText(
        "There is no such workspace, or you may not see it.",
        "List the workspaces to see their ids.",
    ),
    "TEMPLATE_NOT_FOUND": ReasonText(
        "There is no such template, or you may not use it.", "List the templates to see their ids."
    ),
    "WORKSPACE_NOT_READY": ReasonText(
        "The workspace is in a state in which this is not possible.",
        "Wait if it is being prepared or stopped; start it with "
        "POST /api/v1/workspaces/{workspace_id}/start if it is stopped.",
    ),
    "QUOTA_EXHAUSTED": ReasonText(
        "You use as much of `dimension` as you may.",
        "Stop or delete what is not needed, or ask an administrator for more.",
    ),
    "NO_NODE": ReasonText(
        "No machine can host the workspace now.", "Try again later, or ask the operator."
    ),
    "NODE_LOST": ReasonText(
        "The machine of the workspace does not answer.",
        "Try again later, or start the workspace to have it made again on another machine.",
    ),
    "NODE_NOT_FOUND": ReasonText("There is no such machine.", "List the nodes to see their ids."),
    "NODE_FULL": ReasonText(
        "The machine of the workspace has no room left for this.",
        "Remove what is not needed, or ask the operator.",
    ),
    "STALE_NODE": ReasonText(
        "A machine's registration is out of date.", "It registers again by itself; try again."
    ),
    "STALE_PLACEMENT": ReasonText(
        "The workspace was moved to another machine meanwhile.", "Try again."
    ),
    "STALE_OWNER": ReasonText("Another process has taken over the chat meanwhile.", "Try again."),
    "JOURNAL_CHANGED": ReasonText(
        "The record of what was executed is another one than expected.",
        "Check whether the effect happened before you repeat it.",
    ),
    "EXECUTION_ID_REUSED": ReasonText(
        "The id of an execution was used for another one.",
        "Send the request again with a new Idempotency-Key.",
    ),
    "EXECUTION_CANCELLED": ReasonText(
        "It was cancelled before it began, and changed nothing.", "Send it again if it is wanted."
    ),
    "OUTCOME_UNKNOWN": ReasonText(
        "It is not known whether the change was made.",
        "Look at the files before you repeat it.",
    ),
    "FILE_WORKER_GONE": ReasonText(
        "The program that works on files ended; nothing was changed.", "Try again."
    ),
    "SPAWNER_GONE": ReasonText(
        "The program that starts processes ended and is started again.", "Try again shortly."
    ),
    "PROCESS_NOT_FOUND": ReasonText(
        "There is no such process in this workspace.", "List the processes to see their ids."
    ),
    "PROCESS_NOT_RUNNING": ReasonText(
        "The process has ended.", "Read its output to see how it ended."
    ),
    "NOT_ATTACHABLE": ReasonText(
        "The process has no open input or no terminal; `wants` says which.",
        "Start one that has it.",
    ),
    "TOO_MANY_PROCESSES": ReasonText(
        "As many processes run as may.", "End one of them, then try again."
    ),
    "OUTPUT_GONE": ReasonText(
        "This part of the output is no longer stored.", "Read on from `oldest_cursor`."
    ),
    "INVALID_PATTERN": ReasonText(
        "The pattern cannot be read; `problem` says why.", "Write it in the syntax of RE2."
    ),
    "PATH_NOT_FOUND": ReasonText(
        "There is no such path in the workspace.",
        "Use one of `suggestions`, or list the directory to see the names.",
    ),
    "OUTSIDE_WORKSPACE": ReasonText(
        "The path leads out of the workspace.", "Name a path inside of it."
    ),
    "PATH_FORBIDDEN": ReasonText("The path may not be read or written.", "Choose another path."),
    "WRONG_PATH_KIND": ReasonText(
        "Something of another kind is at the path; `kind` says what.",
        "Name a path of the kind that is asked for.",
    ),
    "PATH_EXISTS": ReasonText("Something is at the path already.", "Choose another path."),
    "FILE_CHANGED": ReasonText(
        "The file was changed since it was read; nothing was written.",
        "Read it again and repeat the change.",
    ),
    "EDIT_MISMATCH": ReasonText(
        "The text to replace is not in the file, or more than once.",
        "Read the file again and name the text exactly.",
    ),
    "PAST_END": ReasonText("The place is past the end of the file.", "Name an earlier one."),
    "NOTHING_TO_UNDO": ReasonText(
        "No edit is known that could be undone.", "Change the file instead."
    ),
    "NOT_A_REPOSITORY": ReasonText(
        "There is no git repository at the path.", "Name a directory with a repository."
    ),
    "MERGE_CONFLICT": ReasonText(
        "Both sides changed the same files; nothing was merged.",
        "Choose a strategy for the conflicts, then merge again.",
    ),
    "CHECKPOINT_NOT_FOUND": ReasonText(
        "There is no such checkpoint.", "List the checkpoints to see which there are."
    ),
    "GIT_FAILED": ReasonText(
        "Git cannot do what is asked; the detail says why.", "Correct the cause."
    ),
    "FORK_NOT_POSSIBLE": ReasonText(
        "The workspace cannot be forked in this mode; the detail says why.",
        "Choose another mode, or none.",
    ),
    "NOT_A_FORK": ReasonText(
        "The workspace is no fork of another one.", "Merge only what POST .../fork made."
    ),
    "SANDBOX_TOO_WEAK": ReasonText(
        "The machine cannot confine the workspace as strongly as its template asks.",
        "Ask the operator for a stronger sandbox, or use another template.",
    ),
    "BAD_TICKET": ReasonText(
        "The ticket for the terminal is wrong, used or expired.", "Connect again."
    ),
    "SECRET_NOT_FOUND": ReasonText(
        "There is no such secret, or it is not yours.", "List your secrets to see which there are."
    ),
    "SECRET_VALUE_NEEDED": ReasonText(
        "The change would send the stored secret to another host or in another way.",
        "Give its value again.",
    ),
    "SECRET_NOT_GRANTED": ReasonText(
        "The workspace may not use the secret there.", "Its owner can grant it."
    ),
    "READ_ONLY": ReasonText("This may only be read.", "Ask its owner to make the change."),
    "NO_SHELL": ReasonText("The workspace has no shell.", "Run a program with argv instead."),
    "WORKDIR_NOT_FOUND": ReasonText(
        "The directory to start in does not exist.", "Make it first, or name another one."
    ),
}
MCP_REASONS: Mapping[str, ReasonText] = {
    "SERVER_NOT_FOUND": ReasonText(
        "There is no such MCP server, or you may not see it.", "List the servers to see their ids."
    ),
    "SLUG_TAKEN": ReasonText("Another MCP server has this slug.", "Choose another one."),
    "SLUG_IN_USE": ReasonText(
        "Chats have used this MCP server, so its slug cannot change.", "Keep the slug."
    ),
    "SERVER_DISABLED": ReasonText("The MCP server is switched off.", "Ask an administrator."),
    "MISCONFIGURED": ReasonText(
        "The settings of the MCP server cannot work.", "An administrator has to change `field`."
    ),
    "ADDRESS_BLOCKED": ReasonText(
        "The address is private, or plain HTTP, and the operator does not allow that.",
        "Use a public https address, or ask the operator to allow it.",
    ),
    "TOOL_NOT_FOUND": ReasonText("The MCP server has no such tool.", "List its tools again."),
    "TOOL_DENIED": ReasonText(
        "The lists of the MCP server exclude the tool.", "Ask an administrator to allow it."
    ),
    "PLAN_MODE_DENIED": ReasonText(
        "The MCP server is not approved for plan mode.", "Leave plan mode first."
    ),
    "TOOL_CHANGED": ReasonText(
        "The tool was changed since it was listed.", "List the tools again."
    ),
    "BAD_ARGUMENTS": ReasonText(
        "The arguments are not a JSON object within the limits.", "Correct them."
    ),
    "CATALOGUE_CHANGED": ReasonText(
        "The list of tools changed between two pages.", "Begin again with the first page."
    ),
    "CALL_ACKNOWLEDGED": ReasonText(
        "The result was acknowledged and is no longer stored.", "Call the tool again if needed."
    ),
    "TOO_MANY_CALLS": ReasonText("Too many tools are called at once.", "Try again shortly."),
    "GATEWAY_LOST": ReasonText(
        "The process ended during the call, and the outcome is not known.",
        "Check whether the effect happened before you repeat it.",
    ),
    "NEEDS_CONNECT": ReasonText("Your account is not connected.", "Connect it first."),
    "NEEDS_RECONNECT": ReasonText(
        "The server no longer accepts your account.", "Connect it again."
    ),
    "INSUFFICIENT_SCOPE": ReasonText("Your connection lacks scopes.", "Connect again to add them."),
    "NOT_OAUTH": ReasonText("The MCP server does not use OAuth.", "There is nothing to connect."),
    "FLOW_EXPIRED": ReasonText("The sign-in at the server took too long.", "Begin again."),
    "FLOW_CONSUMED": ReasonText("The sign-in at the server was completed before.", "Begin again."),
    "FLOW_MISMATCH": ReasonText(
        "The sign-in at the server belongs to another user or browser.", "Begin again."
    ),
    "ISSUER_MISMATCH": ReasonText(
        "The answer comes from another authorization server than expected.", "Begin again."
    ),
    "PKCE_UNSUPPORTED": ReasonText(
        "The authorization server offers no PKCE with S256.", "Ask its operator for it."
    ),
    "CONFIG_SUPERSEDED": ReasonText(
        "An administrator changed the MCP server meanwhile.", "Begin again."
    ),
    "AUTHORIZATION_DECLINED": ReasonText(
        "The user or the authorization server declined.", "Begin again if it was a mistake."
    ),
    "AUTHORIZATION_SERVER_FAILED": ReasonText(
        "The authorization server failed.", "Try again later."
    ),
    "CONNECT_FAILED": ReasonText("The MCP server cannot be reached.", "Check its address."),
    "CONNECT_TIMEOUT": ReasonText("The MCP server took too long to connect.", "Try again later."),
    "CIRCUIT_OPEN": ReasonText(
        "The MCP server failed repeatedly and is not called for a while.", "Try again later."
    ),
    "SESSION_LOST": ReasonText("The connection to the MCP server broke.", "Try again."),
    "IDLE_TIMEOUT": ReasonText("The MCP server sent nothing for too long.", "Try again."),
    "CALL_TIMEOUT": ReasonText("The call took longer than it may.", "Ask for less at a time."),
    "RATE_LIMITED": ReasonText("The MCP server asks for fewer calls.", "Try again later."),
    "RESULT_TOO_LARGE": ReasonText("The result is larger than allowed.", "Ask for less at a time."),
    "PROTOCOL_ERROR": ReasonText(
        "The MCP server does not follow the protocol.", "Report it to its operator."
    ),
}
