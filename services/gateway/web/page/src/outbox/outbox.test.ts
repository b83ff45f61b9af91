// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { flush, onStored, outbox, post } from "./outbox.ts";

const TIMED_OUT = { type: "about:blank", title: "Gateway timeout", status: 504, detail: "", instance: "", code: "INTERNAL", retryable: true };

/** Whether a chat's messages are cut by a proxy, or the answer breaks off after they were stored. */
let outcomes: Record<string, "stored" | "cut by a proxy" | "answer cut">;
let arrived: [string, string][];

function answer(request: Request): Response {
  const chatId = new URL(request.url).pathname.split("/").at(-2)!;
  arrived.push([chatId, request.headers.get("Idempotency-Key")!]);
  switch (outcomes[chatId]) {
    case "cut by a proxy":
      return Response.json(TIMED_OUT, { status: 504 });
    case "answer cut":
      return new Response('{"message": {"id"', { status: 201, headers: { "Content-Type": "application/json" } });
    default:
      return Response.json({ message: null, queued: true }, { status: 201 });
  }
}

const message = (chatId: string) => ({ chatId, content: [{ type: "text" as const, text: chatId }], busy: "queue" as const, modelId: null, effort: null, mcpServerIds: null });

// The outbox sends again every few seconds while there is a network: on a slow machine that would be in
// the middle of a test, also if an earlier file of tests loaded it.
beforeEach(() => {
  vi.spyOn(navigator, "onLine", "get").mockReturnValue(false);
});

afterEach(() => {
  outbox.set([]);
  vi.restoreAllMocks();
  localStorage.clear();
  vi.unstubAllGlobals();
});

test("a message that a proxy gives up each time holds up those of its chat, and no others", async () => {
  [outcomes, arrived] = [{ a: "cut by a proxy", b: "cut by a proxy" }, []];
  vi.stubGlobal("fetch", async (request: Request) => answer(request));
  const first = await post(message("a"));
  await post(message("a"));
  await post(message("b"));
  outcomes = { a: "cut by a proxy", b: "stored" };
  arrived = [];
  await flush();
  expect(first).toEqual({ kind: "waits", isForAll: false });
  // Attempts of one request have its key.
  expect([...new Map(arrived.map(([chatId, key]) => [key, chatId])).values()]).toEqual(["a", "b"]);
  expect(outbox.get().map((each) => each.chatId)).toEqual(["a", "a"]);
});

test("a message whose answer was cut waits, and is sent again under its key", async () => {
  [outcomes, arrived] = [{ a: "answer cut" }, []];
  vi.stubGlobal("fetch", async (request: Request) => answer(request));
  const sent = await post(message("a"));
  outcomes = { a: "stored" };
  await flush();
  const keys = new Set(arrived.map(([, key]) => key));
  expect([sent, arrived.length, keys.size, outbox.get()]).toEqual([{ kind: "waits", isForAll: false }, 2, 1, []]);
});

test("who shows a chat is told of a stored message before it leaves the outbox, at each attempt", async () => {
  [outcomes, arrived] = [{ a: "stored", b: "cut by a proxy" }, []];
  vi.stubGlobal("fetch", async (request: Request) => answer(request));
  const seen: string[] = [];
  const leave = onStored((chatId) => seen.push(`${chatId} with ${outbox.get().length} in the outbox`));
  await post(message("a"));
  await post(message("b"));
  outcomes = { b: "stored" };
  await flush();
  leave();
  await post(message("b"));
  expect(seen).toEqual(["a with 1 in the outbox", "b with 1 in the outbox"]);
  expect(outbox.get()).toEqual([]);
});
