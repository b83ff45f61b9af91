import { expect, test } from "vitest";
import type { Message, Part, Usage } from "../api/types.ts";
import { runsOf } from "./runs.ts";

const time = (ms: number): string => new Date(Date.UTC(2026, 0, 1) + ms).toISOString();
const usage = (cost: number | null): Usage =>
  ({ input_tokens: 10, cache_read_tokens: 80, cache_write_tokens: 10, output_tokens: 5, reasoning_tokens: 2, cost_micros: cost, is_estimate: false, is_fallback: false }) as Usage;

function message(id: number, role: Message["role"], ms: number, more: Partial<Message> = {}): Message {
  return { id, role, created_at: time(ms), content: [], model_runtime_ms: 0, runtime_ms: 0, compressed: false, usage: null, model_id: null, finish_reason: null, ...more } as Message;
}

const said = (text: string): Part[] => [{ type: "text", text } as unknown as Part];
const call = (id: string): Part => ({ type: "tool-call", tool_call_id: id, tool_name: "execute" }) as unknown as Part;
const result = (id: string, ms: number, outcome: string): Part =>
  ({ type: "tool-result", tool_call_id: id, created_at: time(ms), outcome }) as unknown as Part;

const TURN = [
  message(5, "user", 0, { content: said(" build it\nplease") }),
  message(6, "assistant", 2000, { content: [call("a"), call("b")], model_id: "m1", model_runtime_ms: 1500, runtime_ms: 1800, usage: usage(200), finish_reason: "tool_calls" }),
  message(7, "tool", 3000, { content: [result("a", 3000, "failed")] }),
  message(8, "assistant", 4000, { model_id: "m2", model_runtime_ms: 900, usage: usage(null), finish_reason: "stop" }),
];

test("a turn has its steps, tools, sums and time", () => {
  const [run] = runsOf(TURN.toReversed(), { status: "waiting" });
  expect(run?.prompt).toBe("build it");
  expect(run?.status).toBe("done");
  expect(run?.steps.map((each) => [each.messageId, each.modelId, each.modelMs, each.finishReason])).toEqual([
    [6, "m1", 1500, "tool_calls"],
    [8, "m2", 900, "stop"],
  ]);
  expect(run?.tools.map(({ name, outcome, durationMs }) => [name, outcome, durationMs])).toEqual([
    ["execute", "failed", 1000],
    ["execute", "running", null],
  ]);
  expect(run?.sums).toEqual({ inTokens: 200, outTokens: 10, cacheTokens: 160, costMicros: 200, unpricedCalls: 1 });
  expect(run?.totalMs).toBe(4000);
});

test("the newest turn is first and has the status of the chat, earlier ones how their answer ended", () => {
  const cut = message(3, "assistant", 0, { finish_reason: "length" });
  const messages = [message(1, "user", 0), message(2, "user", 0), cut, ...TURN];
  expect(runsOf(messages, { status: "requires_action" }).map((each) => each.status)).toEqual(["waits", "cut", "unanswered"]);
  expect(runsOf(messages, { status: "error" })[0]?.status).toBe("failed");
  expect(runsOf([message(1, "user", 0), message(2, "assistant", 0, { finish_reason: "interrupted" })], { status: "waiting" })[0]?.status).toBe("interrupted");
});

test("a summary belongs to the turn that made it, and messages before a prompt to none", () => {
  const summary = [message(9, "user", 5000, { compressed: true }), message(10, "assistant", 6000, { compressed: true })];
  const runs = runsOf([message(4, "assistant", 0), ...TURN, ...summary], { status: "waiting" });
  expect(runs.length).toBe(1);
  expect(runs[0]?.steps.map((each) => each.kind)).toEqual(["answer", "answer", "summary"]);
});
