/** Messages and the preview as the rows that people read: calls with their results, in order. */
import type { Message, Part, ToolCallPart, ToolResultPart } from "../api/types.ts";
import { type ChatState, type Tail, tailKey } from "../stream/chat-state.ts";

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
  | { kind: "user"; key: string; beginId: number; message: Message }
  | { kind: "notice"; key: string; beginId: number; message: Message }
  | AssistantItem;

export interface AssistantItem {
  kind: "assistant";
  key: string;
  /** The id of its first message; infinite for a preview. */
  beginId: number;
  message: Message | null;
  pieces: readonly Piece[];
  isLive: boolean;
}

/** Tools that only look: several in a row are one row. */
const LOOKS = new Set(["read_file", "list_files", "find_files", "search_files"]);

/** Return the rows. A call is matched with the first result of its id that follows it. */
export function itemsOf(
  messages: readonly Message[],
  tail: Tail | null,
  previewed: ChatState["previewed"] = {},
): Item[] {
  const items: Item[] = [];
  const last = messages.findLastIndex((each) => each.role === "assistant");
  messages.forEach((message, place) => {
    if (message.role === "user") {
      items.push({ kind: "user", key: `m${message.id}`, beginId: message.id, message });
    } else if (message.role === "assistant") {
      const results = resultsAfter(messages, place);
      const live = place === last ? liveResults(tail) : NONE;
      const key = previewed[message.id] ?? `m${message.id}`;
      const pieces = piecesOf(message.content, (id) => results.get(id) ?? live.get(id) ?? null, key);
      items.push({ kind: "assistant", key, beginId: message.id, message, pieces, isLive: false });
    } else if (message.role === "system" && message.content.length) {
      items.push({ kind: "notice", key: `m${message.id}`, beginId: message.id, message });
    }
  });
  const generated = (tail?.parts ?? []).filter(({ part }) => part.type !== "tool-result");
  if (tail && generated.length) {
    const parts = generated.map(({ part }) => part);
    // Parts of a message that is durable by now must not take its row.
    const key = items.some((each) => each.key === tailKey(tail)) ? `${tailKey(tail)}+` : tailKey(tail);
    // A summary has its result before both are stored.
    const results = liveResults(tail);
    const pieces = piecesOf(parts, (id) => results.get(id) ?? null, key);
    items.push({ kind: "assistant", key, beginId: Number.POSITIVE_INFINITY, message: null, pieces, isLive: true });
  }
  return items;
}

/** Return whether no answer of the same turn follows; notices in between do not count. */
export function endsTurn(items: readonly Item[], index: number): boolean {
  let next = index + 1;
  while (items[next]?.kind === "notice") next += 1;
  return items[next]?.kind !== "assistant";
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
  for (const part of parts) {
    // Results are left out: a preview and its message have the same keys.
    const key = `${prefix}.${pieces.length}`;
    if (part.type === "tool-call") {
      const result = own.get(part.tool_call_id) ?? resultOf(part.tool_call_id);
      pieces.push({ kind: "call", key, call: { key, call: part, result } });
    } else if (part.type !== "tool-result") {
      pieces.push({ kind: "part", key, part });
    }
  }
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

function onlyLooks(item: AssistantItem): boolean {
  return item.pieces.length > 0 && item.pieces.every((piece) =>
    piece.kind === "calls" || (piece.kind === "call" && LOOKS.has(piece.call.call.tool_name)),
  );
}

function callsOf(item: AssistantItem): Call[] {
  return item.pieces.flatMap((piece) =>
    piece.kind === "calls" ? piece.calls : piece.kind === "call" ? [piece.call] : [],
  );
}

/** Return whether two rows show the same; a row that grows never does. */
export function sameItem(was: Item, is: Item): boolean {
  if (was.kind !== "assistant" || is.kind !== "assistant") return was.kind === is.kind && was.message === is.message;
  return was.message === is.message && is.message !== null && was.isLive === is.isLive && samePieces(was.pieces, is.pieces);
}

function samePieces(was: readonly Piece[], is: readonly Piece[]): boolean {
  return (
    was.length === is.length &&
    was.every((piece, index) => {
      const other = is[index];
      if (piece.kind === "call" && other?.kind === "call") {
        return piece.call.call === other.call.call && piece.call.result === other.call.result;
      }
      if (piece.kind === "calls" && other?.kind === "calls") {
        return piece.calls.length === other.calls.length && piece.calls.every((each, at) => each.result === other.calls[at]?.result);
      }
      return piece.kind === "part" && other?.kind === "part" && piece.part === other.part;
    })
  );
}
