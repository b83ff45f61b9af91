/** The turns of a chat as their calls of models and tools: what each used, cost and took. */
import type { Chat, Message, ToolResultPart, Usage } from "../api/types.ts";
import { timesOf } from "./times.ts";

export type Outcome = NonNullable<ToolResultPart["outcome"]> | "running";

export interface ToolRun {
  key: string;
  name: string;
  outcome: Outcome;
  /** Null while it has not ended. */
  durationMs: number | null;
}

export interface Step {
  messageId: number;
  kind: "answer" | "summary";
  modelId: string | null;
  usage: Usage | null;
  modelMs: number;
  stepMs: number;
  finishReason: string | null;
}

export interface Sums {
  inTokens: number;
  outTokens: number;
  cacheTokens: number;
  /** Null if no call has a known price. */
  costMicros: number | null;
  /** Calls whose price is not known. */
  unpricedCalls: number;
}

export type RunStatus = "running" | "waits" | "failed" | "interrupted" | "cut" | "done" | "unanswered";

export interface Run {
  key: string;
  /** The messages, that of the person first. */
  messages: readonly Message[];
  prompt: string;
  status: RunStatus;
  steps: readonly Step[];
  tools: readonly ToolRun[];
  sums: Sums;
  totalMs: number;
}

/** Return the turns, the newest first. Messages before the first one of a person belong to a turn that is not loaded. */
export function runsOf(messages: readonly Message[], chat: Pick<Chat, "status">): Run[] {
  const ordered = messages.toSorted((one, other) => one.id - other.id);
  const starts = ordered.flatMap((each, place) => (each.role === "user" && !each.compressed ? [place] : []));
  const turns = starts.map((start, place) => ordered.slice(start, starts[place + 1]));
  return turns.map((turn, place) => runOf(turn, place === turns.length - 1 ? chat.status : null)).toReversed();
}

function runOf(turn: readonly Message[], chatStatus: Chat["status"] | null): Run {
  const steps = turn.filter((each) => each.role === "assistant").map(stepOf);
  const times = timesOf(turn);
  const results = new Map(turn.flatMap((message) => message.content).flatMap((part) => (part.type === "tool-result" ? [[part.tool_call_id, part] as const] : [])));
  const tools = times.spans.flatMap((span): ToolRun[] => {
    if (span.kind !== "tool") return [];
    const result = results.get(span.key.slice(span.key.indexOf(".") + 1));
    return [{ key: span.key, name: span.label, outcome: result?.outcome ?? "running", durationMs: span.endMs === null ? null : span.endMs - span.startMs }];
  });
  return {
    key: `r${turn[0]!.id}`,
    messages: turn,
    prompt: promptOf(turn[0]!),
    status: statusOf(steps, chatStatus),
    steps,
    tools,
    sums: sumsOf(steps),
    totalMs: times.totalMs,
  };
}

function stepOf(message: Message): Step {
  return {
    messageId: message.id,
    kind: message.compressed ? "summary" : "answer",
    modelId: message.model_id,
    usage: message.usage ?? null,
    modelMs: message.model_runtime_ms,
    stepMs: message.runtime_ms,
    finishReason: message.finish_reason ?? null,
  };
}

function promptOf(message: Message): string {
  const said = message.content.flatMap((part) => (part.type === "text" ? [part.text.trim()] : [])).find(Boolean);
  return said?.split("\n", 1)[0] ?? "";
}

function statusOf(steps: readonly Step[], chatStatus: Chat["status"] | null): RunStatus {
  if (chatStatus === "running" || chatStatus === "interrupting") return "running";
  if (chatStatus === "requires_action") return "waits";
  if (chatStatus === "error") return "failed";
  const reason = steps.at(-1)?.finishReason;
  if (steps.length === 0) return "unanswered";
  if (reason === "interrupted") return "interrupted";
  return reason === "length" || reason === "content_filter" ? "cut" : "done";
}

/** Return all tokens of a prompt, those of the cache among them. */
export function inTokens(usage: Usage): number {
  return usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens;
}

function sumsOf(steps: readonly Step[]): Sums {
  const used = steps.flatMap(({ usage }) => usage ?? []);
  const costs = used.flatMap(({ cost_micros }) => cost_micros ?? []);
  const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);
  return {
    inTokens: sum(used.map(inTokens)),
    outTokens: sum(used.map((each) => each.output_tokens)),
    cacheTokens: sum(used.map((each) => each.cache_read_tokens)),
    costMicros: costs.length ? sum(costs) : null,
    unpricedCalls: used.length - costs.length,
  };
}
