/** How long workspaces live, in words. */
import type { components } from "../api/schema.d.ts";

type Workspace = components["schemas"]["Workspace"];
type Template = components["schemas"]["TemplateSummary"];

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** So long before it stops a workspace warns. */
const WARNED_MS = 5 * MINUTE_MS;

const SOURCES: Record<NonNullable<Workspace["ttl_source"]>, string> = {
  template: "set by its template",
  installation: "set for this installation",
  requested: "chosen for this workspace",
};

function span(ms: number): string {
  if (ms === 0) return "no end";
  return ms % HOUR_MS === 0 ? `${ms / HOUR_MS} h` : `${Math.round(ms / MINUTE_MS)} min`;
}

/** Return the lifetime of a workspace and what it comes from. */
export function lifetimeOf({ ttl_ms, ttl_source, is_ttl_fixed }: Pick<Workspace, "ttl_ms" | "ttl_source" | "is_ttl_fixed">): string {
  if (is_ttl_fixed) return `${span(ttl_ms)}, fixed by its template: only use extends it`;
  return ttl_source ? `${span(ttl_ms)}, ${SOURCES[ttl_source]}` : span(ttl_ms);
}

/** Return the lifetime of new workspaces of a template. */
export function lifetimeOfTemplate({ ttl_ms, ttl_max_ms, is_ttl_fixed }: Pick<Template, "ttl_ms" | "ttl_max_ms" | "is_ttl_fixed">): string {
  const most = ttl_max_ms ? `, at most ${span(ttl_max_ms)}` : "";
  return `${span(ttl_ms)}${most}${is_ttl_fixed ? ", fixed" : ""}`;
}

const STOPPED: Record<NonNullable<Workspace["stop_reason"]>, string> = {
  requested: "It was stopped on request.",
  autostop: "It stopped because its time was up. Starting it again keeps its files.",
  drain: "It stopped because its node was taken out of use.",
  quota: "It stopped because it used more than it may.",
  owner_gone: "It stopped because the account of its owner was deactivated.",
};

/** Say why a workspace does not run; nothing if it does. */
export function stoppedWords({ state, stop_reason }: Pick<Workspace, "state" | "stop_reason">): string {
  return (state === "stopped" || state === "stopping") && stop_reason ? STOPPED[stop_reason] : "";
}

/** Say that a workspace stops soon; nothing if it does not. */
export function stopsSoonWords({ state, deadline }: Pick<Workspace, "state" | "deadline">, now: number): string {
  const left = deadline && (state === "ready" || state === "busy") ? Date.parse(deadline) - now : Number.POSITIVE_INFINITY;
  if (left > WARNED_MS) return "";
  const minutes = Math.max(0, Math.ceil(left / MINUTE_MS));
  return minutes ? `It stops in ${minutes} min unless it is used.` : "It stops now.";
}
