/** What API keys and service tokens may be limited to, in words. A contract test holds this list against what the routes ask for. */
export type Scope = (typeof SCOPES)[number][0];

/** Each with its label, what it covers, and whether only administrators have use of it. */
export const SCOPES = [
  ["chat:read", "Read chats", "Also messages, events, models, schedules and usage.", false],
  ["chat:write", "Write in chats", "Begin, continue, change and delete them.", false],
  ["file:write", "Upload files", "For messages.", false],
  ["workspace:read", "Read workspaces", "Their files, processes and git, and the list of secrets.", false],
  ["workspace:write", "Change workspaces", "Also run commands, store secrets and grant them.", false],
  ["mcp:read", "See MCP servers", "And their tools.", false],
  ["mcp:write", "Sign in at MCP servers", "Own values and logins.", false],
  ["mcp:call", "Call tools of MCP servers", "Also prompts and resources.", false],
  ["identity:read", "See people and groups", "Names, and who is in which group.", false],
  ["chat:admin", "Administer chats", "Rules, providers, models, hooks, limits and settings.", true],
  ["workspace:admin", "Administer workspaces", "Templates, policies and nodes.", true],
  ["mcp:admin", "Administer MCP servers", "Add, change and delete them.", true],
  ["identity:admin", "Administer people", "Users, groups and identity providers.", true],
  ["audit:read", "Read the audit log", "And verify it.", true],
] as const;

export const DAY_S = 86_400;
/** In days. */
export const LIFETIMES = [
  ["30", "30 days"],
  ["90", "90 days"],
  ["365", "A year"],
] as const;
export type Lifetime = (typeof LIFETIMES)[number][0];

const WORDS = new Map<string, string>(SCOPES.map(([scope, words]) => [scope, words]));

/** Say what a key with these scopes may do; a scope that is newer than this page is named as it is. */
export function scopeWords(scopes: readonly string[]): string {
  if (scopes.length === 0) return "Everything that you may";
  return scopes.map((each) => WORDS.get(each) ?? each).join(", ");
}
