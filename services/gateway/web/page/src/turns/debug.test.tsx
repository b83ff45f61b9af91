// @vitest-environment happy-dom
import { act } from "react";
import { beforeEach, expect, test, vi } from "vitest";
import { queryClient } from "../api/queries.ts";
import type { Chat } from "../api/types.ts";
import { newCanvas } from "../testing/canvas.tsx";
import Debug from "./debug.tsx";

const USAGE = {
  input_tokens: 100,
  cache_read_tokens: 900,
  cache_write_tokens: 0,
  output_tokens: 40,
  reasoning_tokens: 12,
  cost_micros: 1500,
  is_estimate: false,
  is_fallback: true,
};
const BLANK = { chat_id: "c1", content: [], model_id: null, usage: null, runtime_ms: 0, model_runtime_ms: 0, compressed: false, finish_reason: null };
const TURN = [
  {
    ...BLANK,
    id: 4,
    role: "assistant",
    created_at: "2026-11-17T18:00:03Z",
    model_id: "m1",
    usage: USAGE,
    model_runtime_ms: 2000,
    finish_reason: "tool_calls",
    content: [{ type: "tool-call", tool_call_id: "t1", tool_name: "execute" }],
  },
  { ...BLANK, id: 3, role: "user", created_at: "2026-11-17T18:00:00Z", content: [{ type: "text", text: "run the tests" }] },
];
const EARLIER = [
  { ...BLANK, id: 2, role: "assistant", created_at: "2026-11-17T17:00:01Z", finish_reason: "stop" },
  { ...BLANK, id: 1, role: "user", created_at: "2026-11-17T17:00:00Z", content: [{ type: "text", text: "the first one" }] },
];
const FAILED = { message: "It is overloaded.", detail: "busy\u202e", kind: "overloaded", provider: "Acme", status_code: 529, attempts: 3, retryable: true, next_step: null };

const canvas = newCanvas();

beforeEach(() => {
  queryClient.setQueryData(["models"], { items: [{ id: "m1", name: "acme-1", display_name: "Acme One" }], next_cursor: null });
  vi.stubGlobal("fetch", async (request: Request) => {
    const isEarlier = new URL(request.url).searchParams.get("before_id") === "3";
    return Response.json({ messages: isEarlier ? EARLIER : TURN, has_more: !isEarlier });
  });
});

async function show(more: object): Promise<void> {
  const chat = { id: "c1", status: "waiting", last_error: null, retry: null, ...more } as unknown as Chat;
  await canvas.show(<Debug chat={chat} />);
  await vi.waitFor(() => expect(canvas.element.querySelector("summary, .panel-note")).not.toBeNull());
}

async function press(words: string): Promise<void> {
  await act(async () => [...canvas.element.querySelectorAll("button")].find((each) => each.textContent === words)!.click());
}

const cells = (label: string): string[][] =>
  [...canvas.element.querySelectorAll(`[aria-label="${label}"] tbody tr`)].map((row) => [...row.querySelectorAll("td")].map((each) => each.textContent!.trim()));

test("a turn shows its model calls and tools with tokens, cost, time and outcome", async () => {
  await show({});
  expect(canvas.element.querySelector("summary")?.textContent).toContain("run the tests");
  expect(canvas.element.querySelector("summary")?.textContent).toContain("Acme One · 1K in, 40 out · $0.0015 · 3.0 s");
  expect(cells("Calls of the model")).toEqual([["Acme One  fallback", "1K900 cached", "4012 thinking", "$0.0015", "2.0 s", "to call tools"]]);
  expect(cells("Calls of tools")).toEqual([["execute", "running", "not ended"]]);
});

test("earlier turns are loaded on demand", async () => {
  await show({});
  await act(async () => press("Earlier turns"));
  await vi.waitFor(() => expect(canvas.element.querySelectorAll("summary").length).toBe(2));
  expect(canvas.element.querySelectorAll("summary")[1]?.textContent).toContain("the first one");
  expect(canvas.element.textContent).not.toContain("Earlier turns");
});

test("a failed turn says why, with provider, status, attempts and detail", async () => {
  await show({ status: "error", last_error: FAILED });
  const notice = canvas.element.querySelector(".notice.is-bad")?.textContent;
  expect(notice).toContain("The provider is overloaded");
  expect(notice).toContain("Acme · overloaded · HTTP 529 · 3 attempts");
  expect(notice).toContain("busyU+202E");
  expect(canvas.element.querySelector("summary .badge")?.textContent).toBe("failed");
});

test("a turn is saved as JSON", async () => {
  const saved: string[] = [];
  vi.spyOn(URL, "createObjectURL").mockImplementation((blob) => {
    void (blob as Blob).text().then((text) => saved.push(text));
    return "blob:x";
  });
  await show({});
  await press("Save as JSON");
  await vi.waitFor(() => expect(saved.length).toBe(1));
  const run = JSON.parse(saved[0]!) as { status: string; messages: { id: number }[]; sums: { costMicros: number } };
  expect([run.status, run.messages.map((each) => each.id), run.sums.costMicros]).toEqual(["done", [3, 4], 1500]);
  vi.restoreAllMocks();
});
