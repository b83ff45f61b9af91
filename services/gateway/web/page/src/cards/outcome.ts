/** How a tool call stands, in one word. */
import type { ToolCallPart, ToolResultPart } from "../api/types.ts";

export type Standing = "running" | "waiting" | "done" | "failed" | "cancelled" | "unknown";

export interface CardProps {
  call: ToolCallPart;
  result: ToolResultPart | null;
  standing: Standing;
}

export const WORDS: Record<Standing, string> = {
  running: "running",
  waiting: "waits for you",
  done: "done",
  failed: "failed",
  cancelled: "stopped",
  unknown: "may have run",
};

const CUTS: Record<string, string> = {
  length: "It stops here because it reached its length limit.",
  content_filter: "The provider blocked the rest.",
  interrupted: "It was interrupted here.",
};

/** Say why an answer in a result is not complete; nothing if it is. */
export function cutWords(cut: unknown): string {
  return CUTS[string(cut)] ?? "";
}

export function standingOf(result: ToolResultPart | null, isRunning: boolean, isWaiting: boolean): Standing {
  if (result?.outcome) return result.outcome;
  if (isWaiting) return "waiting";
  return isRunning ? "running" : "unknown";
}

export function record(value: unknown): Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}

export function string(value: unknown): string {
  return typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value);
}

/** Return the name of a tool as words. */
export function toolWords(name: string): string {
  const words = name.replaceAll(/[_-]+/g, " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Return what a call does, as it is asked about: a command, or the words of its tool and of its server. */
export function callWords(toolName: string): string {
  if (toolName === "execute") return "a command";
  const at = toolName.indexOf("__");
  const tool = toolWords(at < 0 ? toolName : toolName.slice(at + 2));
  return at < 0 ? `“${tool}”` : `“${tool}” of ${toolName.slice(0, at)}`;
}

/** Return the arguments; of those that are still being written, what can be read of them. */
export function argsOf(call: ToolCallPart): Record<string, unknown> {
  if (call.args !== undefined && call.args !== null) return record(call.args);
  return partial(call.args_delta ?? "");
}

/** Read the strings of an object that is not complete yet. */
export function partial(json: string): Record<string, unknown> {
  try {
    return record(JSON.parse(json));
  } catch {
    const found: Record<string, unknown> = {};
    for (const [, key, value] of json.matchAll(/"(\w+)"\s*:\s*"((?:\\.|[^"\\])*)/g)) {
      try {
        found[key!] = JSON.parse(`"${value!.replace(/\\u[0-9a-f]{0,3}$|\\$/i, "")}"`);
      } catch {
        found[key!] = value;
      }
    }
    return found;
  }
}
