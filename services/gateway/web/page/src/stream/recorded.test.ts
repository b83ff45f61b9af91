import { expect, test } from "vitest";
import type { ChatEvent, Message } from "../api/types.ts";
import { applyAll, EMPTY, settle } from "./chat-state.ts";
import recording from "./recorded.json";

// Recorded from a stack with the scripted model: tools with live output, a queue, an interrupt, an
// edit and a summary; then what the database had.
const { events, messages, queued_messages, status } = recording as unknown as {
  events: ChatEvent[];
  messages: Message[];
  queued_messages: unknown[];
  status: string;
};

test("a recorded stream folds to what the database has, cut at every event", () => {
  const whole = settle(applyAll(EMPTY, events));
  expect(whole.messages).toEqual(messages);
  expect([whole.queue, whole.status, whole.tail, whole.retry, whole.error]).toEqual([queued_messages, status, null, null, null]);
  for (let cut = 0; cut <= events.length; cut += 1) {
    const before = settle(applyAll(EMPTY, events.slice(0, cut)));
    expect(settle(applyAll(before, events.slice(cut)))).toEqual(whole);
  }
});

/** Return the texts of durable messages and of the preview, in order. */
function texts(state: ReturnType<typeof settle>): string[] {
  const parts = [...state.messages.flatMap((each: Message) => each.content), ...(state.tail?.parts ?? []).map((each) => each.part)];
  return parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
}

test("while it is folded no text is shown twice, and none vanishes but by a reset", () => {
  let state = EMPTY;
  let before: string[] = [];
  let hasReset = false;
  for (const event of events) {
    state = applyAll(state, [event]);
    hasReset ||= event.type === "history_reset";
    const now = texts(state);
    expect(new Set(now).size).toBe(now.length);
    if (!hasReset) expect(now.length).toBeGreaterThanOrEqual(before.length);
    before = now;
  }
});
