/** Which MCP servers a chat uses, and what their states mean for a person. */
import type { components } from "../api/schema.d.ts";

export type Server = components["schemas"]["McpServer"];
type AuthorizationStatus = components["schemas"]["AuthorizationStatus"];

/** The chosen servers; null if the chat, or the server's settings, decide. */
export type Selection = readonly string[] | null;

export function isUsed(server: Server, selection: Selection): boolean {
  if (!server.is_enabled) return false;
  if (server.availability === "force_on") return true;
  return selection ? selection.includes(server.id) : server.availability === "default_on";
}

/** Return the selection after a server was switched on or off; servers that are off now stay in it. */
export function toggled(all: readonly Server[], selection: Selection, serverId: string): string[] {
  const chosen =
    selection ?? all.filter((each) => each.availability === "default_on" && isUsed(each, null)).map((each) => each.id);
  return chosen.includes(serverId) ? chosen.filter((each) => each !== serverId) : [...chosen, serverId];
}

/** Return the name of the server of a tool. Slugs are unique, and no other part of a tool's name precedes `__`. */
export function serverOf(toolName: string, all: readonly Server[]): string {
  const slug = toolName.split("__", 1)[0] ?? "";
  return all.find((each) => each.slug === slug)?.display_name || slug;
}

/** How a server is used by a person, in words; and what they can do about it. */
const STATES: Record<AuthorizationStatus, { words: string; action: "connect" | "values" | null }> = {
  not_required: { words: "Ready", action: null },
  connected: { words: "Connected", action: null },
  expired_refreshable: { words: "Connected", action: null },
  not_connected: { words: "Not connected", action: "connect" },
  needs_reconnect: { words: "Has to be connected again", action: "connect" },
  insufficient_scope: { words: "Needs more permissions", action: "connect" },
  missing_user_values: { words: "Needs your values", action: "values" },
};

export function stateOf(server: Server): { words: string; action: "connect" | "values" | null } {
  return STATES[server.authorization_status ?? "not_required"];
}

/** Return the id of the server at whose login an address is; empty if it is no such address. */
export function serverIdOf(address: string): string {
  const path = URL.canParse(address) ? new URL(address).pathname : "";
  return /^\/mcp\/login\/([0-9a-zA-Z-]+)$/.exec(path)?.[1] ?? "";
}
