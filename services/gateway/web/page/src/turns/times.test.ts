import { expect, test } from "vitest";
import type { Message, Part } from "../api/types.ts";
import { timesOf, turnOf } from "./times.ts";

const time = (ms: number): string => new Date(Date.UTC(2026, 0, 1) + ms).toISOString();

function message(id: number, role: Message["role"], ms: number, content: Part[] = [], modelMs = 0): Message {
  return { id, role, created_at: time(ms), content, model_runtime_ms: modelMs, compressed: false } as unknown as Message;
}

const call = (id: string, name: string): Part => ({ type: "tool-call", tool_call_id: id, tool_name: name }) as unknown as Part;
const result = (id: string, ms: number): Part => ({ type: "tool-result", tool_call_id: id, created_at: time(ms) }) as unknown as Part;

const TURN = [
  message(5, "user", 0),
  message(6, "assistant", 3000, [call("a", "execute"), call("b", "read_file")], 2000),
  message(7, "tool", 5000, [result("a", 5000), result("b", 4000)]),
  message(8, "assistant", 7000, [], 2000),
];

test("a turn goes from its message to the next one of a person", () => {
  const messages = [message(1, "user", 0), message(2, "assistant", 1), ...TURN, message(9, "user", 9000)];
  expect(turnOf(messages, 5)).toEqual(TURN);
  expect(turnOf(messages, 9).length).toBe(1);
  expect(turnOf(messages, 4)).toEqual([]);
});

test("model calls, tools at the same time and waits are told apart, with their sums", () => {
  const times = timesOf(TURN);
  expect(times.spans.map(({ kind, label, startMs, endMs }) => [kind, label, startMs, endMs])).toEqual([
    ["wait", "Until the model was called", 0, 1000],
    ["model", "Model", 1000, 3000],
    ["tool", "execute", 3000, 5000],
    ["tool", "read_file", 3000, 4000],
    ["model", "Model", 5000, 7000],
  ]);
  expect(times.totalMs).toBe(7000);
  expect(times.sumMs).toEqual({ model: 4000, tool: 2000, wait: 1000 });
});

test("a call without a result has not ended, and clocks that differ give no negative times", () => {
  const times = timesOf([message(5, "user", 1000), message(6, "assistant", 500, [call("a", "execute")], 2000)]);
  expect(times.spans.map(({ startMs, endMs }) => [startMs, endMs])).toEqual([[0, 0], [0, null]]);
  expect(times.totalMs).toBe(0);
});
