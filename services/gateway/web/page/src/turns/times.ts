/** When a turn called the model and its tools, and when it waited, from what its messages tell. */
import type { Message } from "../api/types.ts";

export type SpanKind = "model" | "tool" | "wait";

export interface Span {
  key: string;
  kind: SpanKind;
  label: string;
  /** Milliseconds since the turn was asked for. */
  startMs: number;
  /** Null while it has not ended. */
  endMs: number | null;
}

export interface TurnTimes {
  spans: readonly Span[];
  totalMs: number;
  /** Milliseconds that were spent on each kind; tools that ran at the same time count once. */
  sumMs: Readonly<Record<SpanKind, number>>;
}

/** Shorter gaps are the time in which messages are stored. */
const WAIT_MS_MIN = 100;

/** Return the messages of the turn that a message started, it among them. */
export function turnOf(messages: readonly Message[], messageId: number): readonly Message[] {
  const start = messages.findIndex((each) => each.id === messageId);
  if (start < 0) return [];
  const length = messages.slice(start + 1).findIndex((each) => each.role === "user");
  return length < 0 ? messages.slice(start) : messages.slice(start, start + 1 + length);
}

export function timesOf(turn: readonly Message[]): TurnTimes {
  const zero = at(turn[0]?.created_at) ?? 0;
  const work = [...modelSpans(turn, zero), ...toolSpans(turn, zero)].toSorted((one, other) => one.startMs - other.startMs);
  const ends = work.map((span) => span.endMs ?? span.startMs);
  const totalMs = Math.max(0, ...ends);
  const waits = gapsOf(work, totalMs);
  const spans = [...work, ...waits].toSorted((one, other) => one.startMs - other.startMs);
  const spent = (kind: SpanKind) => covered(spans.filter((span) => span.kind === kind));
  return { spans, totalMs, sumMs: { model: spent("model"), tool: spent("tool"), wait: spent("wait") } };
}

/** A step is stored as soon as the model has answered, and its calls leave then. */
function modelSpans(turn: readonly Message[], zero: number): Span[] {
  return turn.flatMap((message) => {
    const stored = at(message.created_at);
    if (message.role !== "assistant" || stored === null) return [];
    const endMs = Math.max(0, stored - zero);
    const startMs = Math.max(0, endMs - message.model_runtime_ms);
    const label = message.compressed ? "Summary of the history" : "Model";
    return [{ key: `m${message.id}`, kind: "model" as const, label, startMs, endMs }];
  });
}

function toolSpans(turn: readonly Message[], zero: number): Span[] {
  const results = new Map<string, number | null>();
  for (const part of turn.flatMap((message) => message.content)) {
    if (part.type === "tool-result") results.set(part.tool_call_id, at(part.created_at));
  }
  return turn.flatMap((message) =>
    message.content.flatMap((part) => {
      if (part.type !== "tool-call") return [];
      const begun = at(part.provider_executed ? part.created_at : message.created_at) ?? at(message.created_at);
      if (begun === null) return [];
      const ended = results.get(part.tool_call_id) ?? null;
      const startMs = Math.max(0, begun - zero);
      const endMs = ended === null ? null : Math.max(startMs, ended - zero);
      return [{ key: `${message.id}.${part.tool_call_id}`, kind: "tool" as const, label: part.tool_name, startMs, endMs }];
    }),
  );
}

/** Return the times in which neither the model nor a tool worked. */
function gapsOf(work: readonly Span[], totalMs: number): Span[] {
  const gaps: Span[] = [];
  let until = 0;
  for (const span of [...work, { startMs: totalMs, endMs: totalMs }]) {
    if (span.startMs - until >= WAIT_MS_MIN) {
      const label = until === 0 ? "Until the model was called" : "Waited";
      gaps.push({ key: `w${until}`, kind: "wait", label, startMs: until, endMs: span.startMs });
    }
    until = Math.max(until, span.endMs ?? span.startMs);
  }
  return gaps;
}

function covered(spans: readonly Span[]): number {
  let sum = 0;
  let until = 0;
  for (const { startMs, endMs } of spans) {
    const end = endMs ?? startMs;
    sum += Math.max(0, end - Math.max(startMs, until));
    until = Math.max(until, end);
  }
  return sum;
}

function at(time: string | null | undefined): number | null {
  const found = time ? Date.parse(time) : Number.NaN;
  return Number.isNaN(found) ? null : found;
}
