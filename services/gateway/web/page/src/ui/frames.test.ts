// @vitest-environment happy-dom
import { expect, test, vi } from "vitest";
import { createFrames } from "./frames.ts";

function fake() {
  const requested: ((now: number) => void)[] = [];
  const frames = createFrames((run) => void requested.push(run));
  return { frames, requested, next: (now: number) => requested.shift()!(now) };
}

test("what arrived is taken before anything is shown, in one callback", () => {
  const { frames, requested, next } = fake();
  const done: string[] = [];
  frames.show((now) => done.push(`shown at ${now}`));
  frames.take((now) => done.push(`taken at ${now}`));
  expect(requested.length).toBe(1);
  next(16);
  expect([done, requested.length]).toEqual([["taken at 16", "shown at 16"], 0]);
});

test("work that is asked for in a frame is done in the next one, unless it is left", () => {
  const { frames, requested, next } = fake();
  const done: number[] = [];
  const step = (now: number): void => {
    done.push(now);
    frames.show(step);
  };
  frames.show(step);
  const leave = frames.take(() => done.push(-1));
  leave();
  next(1);
  next(2);
  expect([done, requested.length]).toEqual([[1, 2], 1]);
});

test("work that fails is reported, and the rest is done", () => {
  const { frames, next } = fake();
  const reported = vi.fn();
  vi.stubGlobal("reportError", reported);
  const done = vi.fn();
  frames.take(() => {
    throw new Error("no");
  });
  frames.take(done);
  frames.show(done);
  next(1);
  vi.unstubAllGlobals();
  expect([reported.mock.calls.length, done.mock.calls]).toEqual([1, [[1], [1]]]);
});
