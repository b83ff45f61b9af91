// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { answered, api } from "./client.ts";
import { Problem, Unreachable } from "./problem.ts";

/** What a server answers, one after the other; an error is no answer. */
let answers: (Response | Error)[];
let sent: Request[];

beforeEach(() => {
  sent = [];
  document.cookie = "parley_csrf=t0ken";
  vi.useFakeTimers();
  vi.stubGlobal("fetch", async (request: Request): Promise<Response> => {
    sent.push(request);
    const next = answers.shift() ?? Response.json({});
    if (next instanceof Error) throw next;
    return next;
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  document.cookie = "parley_csrf=; max-age=0";
});

/** Let the pauses between attempts pass, and return what came of a request. */
async function outcome(work: Promise<unknown>): Promise<unknown> {
  const ended = work.catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(30_000);
  return ended;
}

const interrupt = (): Promise<unknown> =>
  answered(api.POST("/api/v1/chats/{chat_id}/interrupt", { params: { path: { chat_id: "c1" } }, body: {} }));

const keys = (): (string | null)[] => sent.map((each) => each.headers.get("Idempotency-Key"));

test("a POST has a key of its own, which is the same when it is sent again", async () => {
  answers = [new TypeError("no connection"), new Response("", { status: 503 }), Response.json({}), Response.json({})];
  await outcome(interrupt());
  expect(keys()).toHaveLength(3);
  expect(new Set(keys()).size).toBe(1);
  expect(keys()[0]).toMatch(/^[0-9a-f]{32}$/);
  await outcome(interrupt());
  expect(keys()[3]).not.toBe(keys()[0]);
});

test("a proxy that answers in place of the server is asked again, a problem of the server is not", async () => {
  const problem = { headers: { "Content-Type": "application/problem+json" } };
  answers = [new Response("<html>", { status: 502 }), new Response("<html>", { status: 504 }), new Response("{}", { ...problem, status: 502 })];
  expect(await outcome(interrupt())).toMatchObject({ status: 502 });
  expect(new Set(keys()).size).toBe(1);
  answers = [new Response("{}", { ...problem, status: 504 })];
  expect(await outcome(interrupt())).toMatchObject({ status: 504 });
  expect(sent).toHaveLength(4);
});

test("what changes something has the token of the session, and what only reads has neither", async () => {
  answers = [];
  await outcome(interrupt());
  await outcome(answered(api.GET("/api/v1/me")));
  expect(sent.map((each) => [each.headers.get("X-CSRF-Token"), each.headers.has("Idempotency-Key")])).toEqual([["t0ken", true], [null, false]]);
});

test("after three attempts it is said that there is no answer", async () => {
  answers = [new TypeError("a"), new TypeError("b"), new TypeError("c")];
  expect(await outcome(interrupt())).toBeInstanceOf(Unreachable);
  expect(sent).toHaveLength(3);
});

test("a change without a key is sent once: nobody knows whether it was made", async () => {
  answers = [new TypeError("no connection")];
  const renamed = api.PATCH("/api/v1/chats/{chat_id}", { params: { path: { chat_id: "c1" } }, body: { title: "x" } });
  expect(await outcome(answered(renamed))).toBeInstanceOf(Unreachable);
  expect(sent).toHaveLength(1);
});

test.each([400, 403, 404, 409, 412, 413, 415, 422, 429, 500])("a refusal with %i is not repeated", async (status) => {
  answers = [new Response("", { status })];
  const refused = await outcome(interrupt());
  expect(refused).toBeInstanceOf(Problem);
  expect([(refused as Problem).status, sent.length]).toEqual([status, 1]);
});
