/**
 * The state of a chat as a pure fold over its events.
 *
 * Durable messages and the preview of the message that is being generated are apart. A durable
 * message takes the place of its preview in the same step, so no text is shown twice or vanishes in
 * between. After `history_reset` the messages that follow are collected, and replace the known ones
 * when they are complete.
 */
import type {
  ChatError,
  ChatEvent,
  ChatStatus,
  Message,
  MessagePartEvent,
  Part,
  QueuedMessage,
  RequiredAction,
  RetryState,
  ToolCallPart,
  ToolResultPart,
} from "../api/types.ts";

/** A part that is being generated, with its deltas joined. */
export interface LivePart {
  key: string;
  part: Part;
}

/** The preview of the message, or of the results, that come next. */
export interface Tail {
  historyVersion: number;
  attempt: number;
  seq: number;
  parts: readonly LivePart[];
  /** Whether parts of it were left out. */
  isTruncated: boolean;
}

export interface ChatState {
  messages: readonly Message[];
  hasOlder: boolean;
  /** The id after which messages are missing: what is around a linked message was read alone. */
  gapAfter: number | null;
  /** Messages that take the place of all others once they are complete. */
  replacement: readonly Message[] | null;
  tail: Tail | null;
  /** The keys of the previews that messages had, by their ids: a row stays the same element. */
  previewed: Readonly<Record<number, string>>;
  queue: readonly QueuedMessage[];
  status: ChatStatus | null;
  placeInLine: number;
  retry: RetryState | null;
  error: ChatError | null;
  required: RequiredAction | null;
  /** Why the stream ended for good. */
  ended: string | null;
}

export const EMPTY: ChatState = {
  messages: [],
  hasOlder: false,
  gapAfter: null,
  replacement: null,
  tail: null,
  previewed: {},
  queue: [],
  status: null,
  placeInLine: 0,
  retry: null,
  error: null,
  required: null,
  ended: null,
};

/** Fold events that arrived together. */
export function applyAll(state: ChatState, events: readonly ChatEvent[]): ChatState {
  return events.reduce(apply, state);
}

/** Fold one event. */
export function apply(state: ChatState, event: ChatEvent): ChatState {
  if (event.type === "message") return withMessage(state, event.message);
  const settled = event.type === "history_reset" ? state : settle(state);
  switch (event.type) {
    case "history_reset":
      return { ...settled, replacement: [], tail: null, hasOlder: event.history_reset.truncated };
    case "message_part":
      return withPart(settled, event.message_part);
    case "queue_update":
      return { ...settled, queue: event.queued_messages };
    case "status":
      return withStatus(settled, event.status.status, event.status.place_in_line);
    case "action_required":
      return { ...settled, required: event.action_required };
    case "action_ended":
      return withoutActions(settled, new Set(event.action_ended.actions.map((each) => each.id)));
    case "retry":
      return { ...settled, retry: event.retry };
    case "error":
      if ("code" in event.error) return { ...settled, ended: event.error.message };
      return { ...settled, error: event.error as ChatError };
    case "preview_reset":
      return settled.tail ? { ...settled, tail: null } : settled;
    case "preview_truncated":
      return settled.tail ? { ...settled, tail: { ...settled.tail, isTruncated: true } } : settled;
    case "resync":
      return EMPTY;
    default:
      // `bye`, and whatever a newer server sends.
      return settled;
  }
}

/** Put collected messages in place of the known ones; nothing comes after them for now. */
export function settle(state: ChatState): ChatState {
  if (!state.replacement) return state;
  return { ...state, messages: state.replacement, replacement: null, gapAfter: null };
}

/** Put older messages before the known ones. */
export function withOlder(state: ChatState, older: readonly Message[], hasOlder: boolean): ChatState {
  const first = state.messages[0]?.id ?? Number.POSITIVE_INFINITY;
  const before = older.filter((each) => each.id < first).toSorted((a, b) => a.id - b.id);
  return { ...state, messages: [...before, ...state.messages], hasOlder };
}

/** Return where the messages begin from which on none is missing. */
export function afterGap(state: Pick<ChatState, "messages" | "gapAfter">): number {
  const { gapAfter, messages } = state;
  if (gapAfter === null) return 0;
  const at = messages.findIndex((each) => each.id > gapAfter);
  return at === -1 ? messages.length : at;
}

/** Put the page around a linked message before the newest ones; an earlier such page is left. */
export function withAround(
  state: ChatState,
  around: readonly Message[],
  hasOlder: boolean,
  hasNewer: boolean,
): ChatState {
  const newest = state.messages.slice(afterGap(state));
  const first = newest[0]?.id ?? Number.POSITIVE_INFINITY;
  const before = around.filter((each) => each.id < first).toSorted((a, b) => a.id - b.id);
  const last = before.at(-1);
  // A page without a message before the newest ones is a part of them.
  if (!last) return state;
  const meets = !hasNewer || before.length < around.length;
  return {
    ...state,
    messages: [...before, ...newest],
    hasOlder,
    gapAfter: meets ? null : last.id,
  };
}

/** Put messages into the gap, from its older side or from its newer one. */
export function withGapFilled(
  state: ChatState,
  page: readonly Message[],
  side: "older" | "newer",
  hasMore: boolean,
): ChatState {
  const { gapAfter } = state;
  if (gapAfter === null) return state;
  const at = afterGap(state);
  const end = state.messages[at]?.id ?? Number.POSITIVE_INFINITY;
  const within = page
    .filter((each) => each.id > gapAfter && each.id < end)
    .toSorted((a, b) => a.id - b.id);
  const isClosed = !hasMore || within.length < page.length || within.length === 0;
  const older = side === "older" ? (within.at(-1)?.id ?? gapAfter) : gapAfter;
  return {
    ...state,
    messages: state.messages.toSpliced(at, 0, ...within),
    gapAfter: isClosed ? null : older,
  };
}

function withMessage(state: ChatState, message: Message): ChatState {
  const tail = tailAfter(state.tail, message);
  const previewed = previewedWith(state, message);
  const retry = message.role === "assistant" ? null : state.retry;
  if (state.replacement) {
    return { ...state, replacement: upserted(state.replacement, message), tail, previewed, retry };
  }
  return { ...state, messages: upserted(state.messages, message), tail, previewed, retry };
}

/** Return what tells the preview of a message from others. */
export function tailKey(tail: Tail): string {
  return `t${tail.historyVersion}.${tail.attempt}`;
}

/** Note which preview a message takes the place of. */
function previewedWith({ tail, previewed }: ChatState, message: Message): ChatState["previewed"] {
  const wasShown = tail?.parts.some(({ part }) => part.type !== "tool-result") ?? false;
  if (!tail || !wasShown || message.role !== "assistant" || previewed[message.id]) return previewed;
  return { ...previewed, [message.id]: tailKey(tail) };
}

/** Put a message where its id belongs; a known id is replaced. */
export function upserted(messages: readonly Message[], message: Message): readonly Message[] {
  const last = messages.at(-1);
  if (!last || last.id < message.id) return [...messages, message];
  const at = messages.findIndex((each) => each.id >= message.id);
  const isKnown = messages[at]?.id === message.id;
  return messages.toSpliced(at, isKnown ? 1 : 0, message);
}

/** Return what is left of a preview once a message is durable. */
function tailAfter(tail: Tail | null, message: Message): Tail | null {
  if (!tail || message.role === "user") return tail;
  if (message.role === "assistant") return null;
  const ended = new Set(message.content.map((part) => (part.type === "tool-result" ? part.tool_call_id : "")));
  const parts = tail.parts.filter(
    ({ part }) => part.type !== "tool-result" || !ended.has(part.tool_call_id),
  );
  return parts.length === tail.parts.length ? tail : parts.length ? { ...tail, parts } : null;
}

function withStatus(state: ChatState, status: ChatStatus | null, placeInLine: number): ChatState {
  const isActive = status === "running" || status === "interrupting";
  return {
    ...state,
    status,
    placeInLine,
    retry: isActive ? state.retry : null,
    error: status === "error" ? state.error : null,
    required: status === "requires_action" ? state.required : null,
  };
}

/** Leave out actions that ended, in whatever order their end and the status arrive. */
function withoutActions(state: ChatState, ended: ReadonlySet<string>): ChatState {
  const { required } = state;
  if (!required) return state;
  const over = required.actions.filter((each) => each.id !== null && ended.has(each.id));
  if (over.length === 0) return state;
  const calls = new Set(over.map((each) => each.tool_call_id));
  return {
    ...state,
    required: {
      ...required,
      actions: required.actions.filter((each) => !over.includes(each)),
      tool_calls: required.tool_calls.filter((each) => !calls.has(each.tool_call_id)),
    },
  };
}

function withPart(state: ChatState, given: MessagePartEvent): ChatState {
  const { part, role, history_version, generation_attempt, seq, part_index } = given;
  if (!part) return state;
  const isSame =
    state.tail?.historyVersion === history_version && state.tail.attempt === generation_attempt;
  const before = isSame ? state.tail : null;
  // A repeated part is known already.
  if (before && seq <= before.seq) return state;
  const key = `${role}:${part_index}`;
  const parts = before?.parts ?? [];
  const at = parts.findIndex((each) => each.key === key);
  const joined = { key, part: at === -1 ? begun(part) : join(parts[at]!.part, part) };
  const tail: Tail = {
    historyVersion: history_version,
    attempt: generation_attempt,
    seq,
    parts: at === -1 ? [...parts, joined] : parts.with(at, joined),
    isTruncated: (before?.isTruncated ?? false) || (before !== null && seq > before.seq + 1),
  };
  return { ...state, tail, retry: null };
}

function begun(part: Part): Part {
  return part.type === "tool-result" ? { ...part, result_delta: part.result_delta ?? "" } : part;
}

/** Append a delta to the part that it belongs to. */
function join(was: Part, delta: Part): Part {
  if (was.type === "text" && delta.type === "text") {
    return { ...delta, text: was.text + delta.text };
  }
  if (was.type === "reasoning" && delta.type === "reasoning") {
    return { ...was, ...delta, text: was.text + delta.text };
  }
  if (was.type === "tool-call" && delta.type === "tool-call") return joinCall(was, delta);
  if (was.type === "tool-result" && delta.type === "tool-result") return joinResult(was, delta);
  return delta;
}

function joinCall(was: ToolCallPart, delta: ToolCallPart): Part {
  const args = `${was.args_delta ?? ""}${delta.args_delta ?? ""}`;
  return { ...was, ...delta, ...(args ? { args_delta: args } : {}) };
}

function joinResult(was: ToolResultPart, delta: ToolResultPart): Part {
  const before = delta.result_reset ? "" : (was.result_delta ?? "");
  return { ...was, ...delta, result_delta: `${before}${delta.result_delta ?? ""}` };
}
