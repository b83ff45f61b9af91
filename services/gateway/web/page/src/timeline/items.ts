/** Messages and the preview as the rows that people read: calls with their results, in order. */
import type { Message, Part, ToolCallPart, ToolResultPart } from "../api/types.ts";
import type { Tail } from "../stream/chat-state.ts";

export interface Call {
  key: string;
  call: ToolCallPart;
  result: ToolResultPart | null;
}

export type Piece =
  | { kind: "part"; key: string; part: Part }
  | { kind: "call"; key: string; call: Call }
  | { kind: "calls"; key: string; calls: readonly Call[] };

export type Item =
  | { kind: "user"; key: string; message: Message }
  | { kind: "notice"; key: string; message: Message }
  | { kind: "assistant"; key: string; message: Message | null; pieces: readonly Piece[]; isLive: boolean };

/** Tools that only look: several in a row are one row. */
const LOOKS = new Set(["read_file", "list_files", "find_files", "search_files"]);

/** Return the rows. A call is matched with the first result of its id that follows it. */
export function itemsOf(messages: readonly Message[], tail: Tail | null): Item[] {
  const items: Item[] = [];
  const last = messages.findLastIndex((each) => each.role === "assistant");
  messages.forEach((message, place) => {
    if (message.role === "user") {
      items.push({ kind: "user", key: `m${message.id}`, message });
    } else if (message.role === "assistant") {
      const results = resultsAfter(messages, place);
      const live = place === last ? liveResults(tail) : NONE;
      const pieces = piecesOf(message.content, (id) => results.get(id) ?? live.get(id) ?? null, `m${message.id}`);
      items.push({ kind: "assistant", key: `m${message.id}`, message, pieces, isLive: false });
    } else if (message.role === "system" && message.content.length) {
      items.push({ kind: "notice", key: `m${message.id}`, message });
    }
  });
  const generated = (tail?.parts ?? []).filter(({ part }) => part.type !== "tool-result");
  if (tail && generated.length) {
    const parts = generated.map(({ part }) => part);
    const key = `t${tail.historyVersion}.${tail.attempt}`;
    items.push({ kind: "assistant", key, message: null, pieces: piecesOf(parts, () => null, key), isLive: true });
  }
  return items;
}

/** Return whether no answer of the same turn follows; notices in between do not count. */
export function endsTurn(items: readonly Item[], index: number): boolean {
  return items.slice(index + 1).find((each) => each.kind !== "notice")?.kind !== "assistant";
}

const NONE: ReadonlyMap<string, ToolResultPart> = new Map();

function resultsAfter(messages: readonly Message[], place: number): Map<string, ToolResultPart> {
  const found = new Map<string, ToolResultPart>();
  for (let next = place + 1; messages[next]?.role === "tool"; next += 1) {
    for (const part of messages[next]!.content) {
      if (part.type === "tool-result") found.set(part.tool_call_id, part);
    }
  }
  return found;
}

function liveResults(tail: Tail | null): ReadonlyMap<string, ToolResultPart> {
  const found = new Map<string, ToolResultPart>();
  for (const { part } of tail?.parts ?? []) {
    if (part.type === "tool-result") found.set(part.tool_call_id, part);
  }
  return found;
}

function piecesOf(
  parts: readonly Part[],
  resultOf: (callId: string) => ToolResultPart | null,
  prefix: string,
): Piece[] {
  const own = new Map<string, ToolResultPart>();
  for (const part of parts) if (part.type === "tool-result") own.set(part.tool_call_id, part);
  const pieces: Piece[] = [];
  parts.forEach((part, index) => {
    const key = `${prefix}.${index}`;
    if (part.type === "tool-call") {
      const result = own.get(part.tool_call_id) ?? resultOf(part.tool_call_id);
      pieces.push({ kind: "call", key, call: { key, call: part, result } });
    } else if (part.type !== "tool-result") {
      pieces.push({ kind: "part", key, part });
    }
  });
  return pieces;
}

/** Join calls that only look, of several messages in a row, into one row. */
export function grouped(items: readonly Item[]): Item[] {
  const joined: Item[] = [];
  for (const item of items) {
    const last = joined.at(-1);
    if (item.kind === "assistant" && last?.kind === "assistant" && onlyLooks(item) && onlyLooks(last)) {
      const calls = [...callsOf(last), ...callsOf(item)];
      const pieces: Piece[] = [{ kind: "calls", key: `${last.key}.looks`, calls }];
      joined[joined.length - 1] = { ...last, message: item.message, pieces, isLive: item.isLive };
    } else joined.push(item);
  }
  return joined;
}

function onlyLooks(item: Item & { kind: "assistant" }): boolean {
  return item.pieces.length > 0 && item.pieces.every((piece) =>
    piece.kind === "calls" || (piece.kind === "call" && LOOKS.has(piece.call.call.tool_name)),
  );
}

function callsOf(item: Item & { kind: "assistant" }): Call[] {
  return item.pieces.flatMap((piece) =>
    piece.kind === "calls" ? piece.calls : piece.kind === "call" ? [piece.call] : [],
  );
}
