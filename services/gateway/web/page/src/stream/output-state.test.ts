import { expect, test } from "vitest";
import type { ChatEvent } from "../api/types.ts";
import { applyOutput, KEPT_CHARACTERS, type OutputState, UNREAD } from "./output-state.ts";

const PIECES = ["one\n", "\u001b[3", "2mtwo\u001b[0m\n", "three", ""];

/** Return the events from a cursor on, as a server sends them to a reader that comes back. */
function eventsAfter(cursor: number): ChatEvent[] {
  const events: ChatEvent[] = [];
  let at = 0;
  for (const text of PIECES) {
    if (at >= cursor) events.push(output(at, text));
    at += text.length;
  }
  return [...events, ended(null)];
}

function output(cursor: number, text: string): ChatEvent {
  return {
    type: "process_output",
    chat_id: "c",
    process_output: { process_id: "p", cursor, text, next_cursor: cursor + text.length, truncation: null },
  };
}

function ended(message: string | null): ChatEvent {
  const error = message === null ? null : { code: "PROCESS_NOT_FOUND", message };
  return { type: "process_ended", chat_id: "c", process_ended: { process_id: "p", process: null, error } };
}

function folded(state: OutputState, events: readonly ChatEvent[]): OutputState {
  return events.reduce(applyOutput, state);
}

test("output is resumed at its cursor without loss or doubling, cut at every event", () => {
  const all = eventsAfter(0);
  const whole = folded(UNREAD, all);
  expect([whole.text, whole.isOver]).toEqual([PIECES.join(""), true]);
  for (let cut = 0; cut < all.length; cut += 1) {
    const before = folded(UNREAD, all.slice(0, cut));
    expect(folded(before, eventsAfter(before.cursor))).toEqual(whole);
  }
});

test("output that comes twice is shown once", () => {
  const first = output(0, "one\n");
  expect(folded(UNREAD, [first, first]).text).toBe("one\n");
});

test("a reader that has just begun takes nothing of the stream that is being replaced", () => {
  expect(folded(UNREAD, [output(4, "two\n"), ended(null)])).toBe(UNREAD);
});

test("of too much output the end is kept", () => {
  const long = folded(UNREAD, [output(0, "x".repeat(KEPT_CHARACTERS)), output(KEPT_CHARACTERS, "end")]);
  expect(long.text).toBe(`${"x".repeat(KEPT_CHARACTERS - 3)}end`);
});

test("what cannot be followed says why", () => {
  expect(folded(UNREAD, [ended("There is no such process.")])).toEqual({
    ...UNREAD,
    problem: "There is no such process.",
    isOver: true,
  });
});
