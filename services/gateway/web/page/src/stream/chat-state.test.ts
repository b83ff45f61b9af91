import { expect, test } from "vitest";
import type { ChatEvent, Message, Part } from "../api/types.ts";
import { itemsOf } from "../timeline/items.ts";
import { applyAll, type ChatState, EMPTY, settle, withAround, withGapFilled, withOlder } from "./chat-state.ts";

const CHAT = "d54ac2ca-6657-5cfa-94f3-26d7ff2c992d";

function message(id: number, role: Message["role"], ...content: Part[]): ChatEvent {
  const stored = { id, chat_id: CHAT, role, content, revision: id } as unknown as Message;
  return { type: "message", chat_id: CHAT, message: stored };
}

function text(said: string): Part {
  return { type: "text", text: said };
}

function part(history_version: number, seq: number, given: Part, part_index = 0, role = "assistant"): ChatEvent {
  const message_part = { role, part: given, history_version, generation_attempt: 1, seq, part_index };
  return { type: "message_part", chat_id: CHAT, message_part } as ChatEvent;
}

function status(word: string, place_in_line = 0): ChatEvent {
  return { type: "status", chat_id: CHAT, status: { status: word, place_in_line } } as ChatEvent;
}

const RESET: ChatEvent = { type: "preview_reset", chat_id: CHAT };
const CALL: Part = { type: "tool-call", tool_call_id: "call_0", tool_name: "execute", args: { command: "ls" } };
const RETRY = {
  type: "retry",
  chat_id: CHAT,
  retry: { attempt: 1, delay_ms: 1000, retrying_at: "2026-11-16T09:03:44Z", error: null },
} as ChatEvent;

function output(result_delta: string, more: object = {}): Part {
  return { type: "tool-result", tool_call_id: "call_0", tool_name: "execute", result_delta, ...more };
}

const RESULT: Part = {
  type: "tool-result", tool_call_id: "call_0", tool_name: "execute", result: { ok: true }, outcome: "done",
};

/** A turn with a call, a retry and an edit, as a server sends it. */
const STREAM: ChatEvent[] = [
  message(1, "user", text("list")),
  status("running"),
  RETRY,
  part(1, 1, { type: "reasoning", text: "I look" }),
  part(1, 2, { type: "reasoning", text: " first." }),
  part(1, 3, CALL, 1),
  message(2, "assistant", { type: "reasoning", text: "I look first." }, CALL),
  RESET,
  part(2, 1, output("a\n", { process_id: "p" }), 0, "tool"),
  part(2, 2, output("b\n"), 0, "tool"),
  part(2, 3, output("c\n", { result_reset: true }), 0, "tool"),
  message(3, "tool", RESULT),
  RESET,
  part(3, 1, text("There ")),
  part(3, 2, text("are two.")),
  message(4, "assistant", text("There are two.")),
  status("waiting"),
  RESET,
  { type: "history_reset", chat_id: CHAT, history_reset: { truncated: false } },
  message(5, "user", text("list all")),
  status("running"),
  part(5, 1, text("All")),
  { type: "queue_update", chat_id: CHAT, queued_messages: [] },
  message(6, "assistant", text("All of it.")),
  status("waiting"),
  RESET,
];

test("a stream folds to the same state wherever it is cut", () => {
  const whole = applyAll(EMPTY, STREAM);
  expect(whole.messages.map((each) => each.id)).toEqual([5, 6]);
  expect({ ...whole, messages: [] }).toEqual({ ...EMPTY, status: "waiting", previewed: { 2: "t1.1", 4: "t3.1", 6: "t5.1" } });
  for (let cut = 0; cut <= STREAM.length; cut += 1) {
    const before = applyAll(EMPTY, STREAM.slice(0, cut));
    expect(applyAll(before, STREAM.slice(cut))).toEqual(whole);
    // Parts that are sent again change nothing.
    const last = STREAM[cut - 1];
    if (last?.type === "message_part") expect(applyAll(before, [last])).toEqual(before);
  }
});

/** Return all text that a reader sees. */
function shown(state: ChatState): string[] {
  return itemsOf(state.messages, state.tail).flatMap((item) =>
    item.kind !== "assistant"
      ? []
      : item.pieces.map((piece) => {
          if (piece.kind === "call") return `${piece.call.call.tool_name}: ${piece.call.result?.result_delta ?? ""}`;
          return piece.kind === "part" && "text" in piece.part ? piece.part.text : "";
        }),
  );
}

test("a durable message takes the place of its preview in one step: nothing doubles, nothing flashes", () => {
  let state = EMPTY;
  let before: string[] = [];
  for (const event of STREAM.slice(0, 18)) {
    state = applyAll(state, [event]);
    const now = shown(state);
    expect(new Set(now).size).toBe(now.length);
    expect(now.length).toBeGreaterThanOrEqual(before.length);
    before = now;
  }
  expect(before).toEqual(["I look first.", "execute: ", "There are two."]);
});

test("live output is appended, and discarded when the server says so", () => {
  const states = [9, 10, 11].map((count) => shown(applyAll(EMPTY, STREAM.slice(0, count))).at(-1));
  expect(states).toEqual(["execute: a\n", "execute: a\nb\n", "execute: c\n"]);
});

test("a retry is shown until something of the answer comes", () => {
  expect(applyAll(EMPTY, STREAM.slice(0, 3)).retry?.attempt).toBe(1);
  expect(applyAll(EMPTY, STREAM.slice(0, 4)).retry).toBeNull();
});

test("after a reset the old messages stay until the new ones are complete", () => {
  const ids = (state: ChatState): number[] => state.messages.map((each) => each.id);
  const reset = applyAll(EMPTY, STREAM.slice(0, 20));
  expect(ids(reset)).toEqual([1, 2, 3, 4]);
  expect(ids(settle(reset))).toEqual([5]);
  expect(ids(applyAll(reset, STREAM.slice(20, 21)))).toEqual([5]);
});

test("a gap in the parts is told, and the durable message closes it", () => {
  const gap = applyAll(EMPTY, [part(1, 1, text("a")), part(1, 3, text("c"))]);
  expect(gap.tail?.isTruncated).toBe(true);
  expect(applyAll(gap, [message(2, "assistant", text("abc"))]).tail).toBeNull();
});

test("a new attempt begins a new preview", () => {
  const again = applyAll(EMPTY, [part(1, 1, text("half")), part(2, 1, text("whole"))]);
  expect(shown(again)).toEqual(["whole"]);
});

test("older messages come before the known ones, each once", () => {
  const known = applyAll(EMPTY, [message(3, "user", text("c")), message(4, "user", text("d"))]);
  const older = [message(2, "user"), message(1, "user"), message(3, "user")].map(
    (each) => (each as { message: Message }).message,
  );
  const all = withOlder(known, older, true);
  expect(all.messages.map((each) => each.id)).toEqual([1, 2, 3, 4]);
  expect(all.hasOlder).toBe(true);
});

function stored(...ids: number[]): Message[] {
  return ids.map((id) => (message(id, "user") as { message: Message }).message);
}

function ids(state: ChatState): number[] {
  return state.messages.map((each) => each.id);
}

test("what is around a linked message is before the newest messages, and the gap closes from both sides", () => {
  const newest = { ...EMPTY, messages: stored(90, 91), hasOlder: true };
  const linked = withAround(newest, stored(12, 11, 10), true, true);
  const above = withGapFilled(linked, stored(13, 14), "older", true);
  const both = withGapFilled(above, stored(89, 88), "newer", true);
  const closed = withGapFilled(both, stored(15, 88, 89), "older", true);
  expect([ids(linked), linked.gapAfter]).toEqual([[10, 11, 12, 90, 91], 12]);
  expect([ids(above), above.gapAfter]).toEqual([[10, 11, 12, 13, 14, 90, 91], 14]);
  expect([ids(both), both.gapAfter]).toEqual([[10, 11, 12, 13, 14, 88, 89, 90, 91], 14]);
  expect([ids(closed), closed.gapAfter]).toEqual([[10, 11, 12, 13, 14, 15, 88, 89, 90, 91], null]);
});

test("pages around messages that meet leave no gap, and another link takes the place of the first", () => {
  const newest = { ...EMPTY, messages: stored(90, 91), hasOlder: true };
  const linked = withAround(newest, stored(12, 11, 10), true, true);
  const other = withAround(linked, stored(51, 50), true, true);
  expect(withAround(newest, stored(90, 89, 88), true, true)).toEqual({ ...newest, messages: stored(88, 89, 90, 91) });
  expect([ids(other), other.gapAfter]).toEqual([[50, 51, 90, 91], 51]);
  expect(applyAll(other, [{ type: "history_reset", chat_id: CHAT, history_reset: { truncated: false } } as ChatEvent, message(1, "user"), status("waiting")]).gapAfter).toBeNull();
});

test("an action that ended is waited for no longer, and the others stay", () => {
  const action = (id: string): object => ({ id, tool_call_id: `call ${id}` });
  const required = { tool_calls: [{ tool_call_id: "call a" }], deadline_at: null, actions: [action("a"), action("b")] };
  const over = (id: string): ChatEvent => ({ type: "action_ended", chat_id: CHAT, action_ended: { actions: [{ id }] } }) as ChatEvent;
  const asked = { type: "action_required", chat_id: CHAT, action_required: required } as unknown as ChatEvent;
  const left = applyAll(EMPTY, [status("requires_action"), asked, over("a")]).required;
  expect([left?.actions.map((each) => each.id), left?.tool_calls]).toEqual([["b"], []]);
  expect(applyAll(EMPTY, [status("requires_action"), asked, over("c")]).required).toEqual(required);
  expect(applyAll(EMPTY, [over("a")])).toEqual(EMPTY);
});

test("resync forgets everything, an end is for good, and unknown events change nothing", () => {
  const state = applyAll(EMPTY, STREAM);
  const over = { type: "error", chat_id: CHAT, error: { code: "permission_revoked", message: "Gone.", retryable: false } };
  expect(applyAll(state, [{ type: "resync", chat_id: CHAT }])).toEqual(EMPTY);
  expect(applyAll(state, [over as ChatEvent]).ended).toBe("Gone.");
  expect(applyAll(state, [{ type: "later", chat_id: CHAT } as unknown as ChatEvent])).toEqual(state);
});
