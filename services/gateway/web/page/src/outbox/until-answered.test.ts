import { expect, test } from "vitest";
import { Problem, type ProblemDocument, Unreachable } from "../api/problem.ts";
import { untilAnswered } from "./until-answered.ts";

const problem = (status: number, code: ProblemDocument["code"], retryable: boolean): Problem =>
  new Problem({ type: "about:blank", title: "", status, detail: "", instance: "", code, retryable });

/** Answer one request by these errors, then by a text; return what it came to, and how often it was waited. */
async function outcome(errors: readonly unknown[], signal = new AbortController().signal): Promise<[unknown, number, number]> {
  const left = [...errors];
  let told = 0;
  let waits = 0;
  const request = async (): Promise<string> => {
    if (left.length) throw left.shift();
    return "stored";
  };
  const wait = async (): Promise<void> => {
    waits += 1;
    signal.throwIfAborted();
  };
  const came = await untilAnswered(request, { signal, onWaiting: () => (told += 1), wait }).catch((error: unknown) => error);
  return [came, told, waits];
}

test("a request is repeated while nothing answers, the server starts or a proxy stands in for it", async () => {
  const away = [new Unreachable(), problem(503, "UNAVAILABLE", true), problem(502, "INTERNAL", true), problem(504, "INTERNAL", true)];
  expect(await outcome(away)).toEqual(["stored", 4, 4]);
});

test("a refusal ends it, also one that says that another attempt may help", async () => {
  for (const refusal of [problem(409, "NAME_TAKEN", false), problem(502, "HOOK_FAILED", true), problem(503, "UNAVAILABLE", false), problem(500, "INTERNAL", true), problem(429, "RATE_LIMITED", true)]) {
    expect(await outcome([refusal])).toEqual([refusal, 0, 0]);
  }
});

test("a person who gives up ends the waiting", async () => {
  const controller = new AbortController();
  controller.abort("given up");
  expect(await outcome([new Unreachable()], controller.signal)).toEqual(["given up", 0, 0]);
});
