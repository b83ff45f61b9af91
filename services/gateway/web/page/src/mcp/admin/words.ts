/** States, failures and outcomes of MCP servers in words, each failure with what to do. */
import type { components } from "../../api/schema.d.ts";

type State = components["schemas"]["ServerState"];
type Reason = components["schemas"]["ErrorReason"];
type Outcome = components["schemas"]["CallOutcome"];

export const STATES: Record<State, string> = {
  ready: "Ready",
  needs_authorization: "Needs a login",
  unavailable: "Does not answer",
  misconfigured: "Its settings cannot work",
  excluded: "Not offered",
};
export const OUTCOMES: Record<Outcome, string> = {
  succeeded: "Succeeded",
  tool_error: "The tool reported an error",
  failed: "Failed",
  cancelled: "Cancelled; it may have taken effect",
  timed_out: "Took too long; it may have taken effect",
  unknown: "Not known; it may have taken effect",
};
const REASONS: Partial<Record<Reason, readonly [words: string, remedy: string]>> = {
  misconfigured: ["These settings cannot work", "Correct the settings."],
  address_blocked: ["This address is not allowed", "The operator allows private addresses and plain HTTP by MCPGATEWAY_ALLOWED_HOSTS."],
  credentials_needed: ["The credentials were given for another host", "Give them again."],
  server_disabled: ["The server is switched off", "Enable it."],
  needs_connect: ["A login is needed", "Save the server; then each user connects an account under Settings, MCP servers."],
  needs_reconnect: ["The login is not accepted any more", "Connect the account again under Settings, MCP servers."],
  insufficient_scope: ["The login lacks scopes", "Connect the account again under Settings, MCP servers."],
  not_oauth: ["The server does not offer logins", "Choose another kind of authorization."],
  pkce_unsupported: ["The authorization server lacks PKCE", "It cannot be used; ask its operator."],
  authorization_server_failed: ["The authorization server failed", "Try again later, or name its addresses."],
  missing_user_values: ["Values of headers are missing", "Save the server; then each user gives theirs under Settings, MCP servers."],
  connect_failed: ["It cannot be reached", "Check the address, and whether this machine reaches it."],
  connect_timeout: ["It did not answer in time", "Check the address, and whether the server runs."],
  circuit_open: ["It failed repeatedly and is left alone for a while", "Try again in a minute."],
  rate_limited: ["It asks for fewer requests", "Try again in a minute."],
  protocol_error: ["It does not speak MCP at this address", "Check the path of the address, and the transport."],
  request_refused: ["It refused the request", "Check the address and the authorization."],
  forbidden: ["It refused the authorization", "Check the key or the headers."],
  unauthenticated: ["It refused the authorization", "Check the key or the headers."],
};

/** What a failure means, and what to do; a reason that is newer than this page is told as it is. */
export function reasonWords(reason: Reason): { words: string; remedy: string } {
  const [words, remedy] = REASONS[reason] ?? [reason.replaceAll("_", " "), ""];
  return { words, remedy };
}
