import { expect, test } from "vitest";
import { callWords, partial, standingOf } from "./outcome.ts";

test("arguments that are not complete yet are read as far as they go", () => {
  const json = JSON.stringify({ command: 'echo "hi"\n', workdir: "/a" });
  const read = Array.from({ length: json.length + 1 }, (_, end) => partial(json.slice(0, end)));
  expect(read.at(-1)).toEqual({ command: 'echo "hi"\n', workdir: "/a" });
  expect(read[20]).toEqual({ command: 'echo "h' });
});

test("a call without a result runs, waits, or may have run", () => {
  expect([standingOf(null, true, false), standingOf(null, true, true), standingOf(null, false, false)]).toEqual([
    "running", "waiting", "unknown",
  ]);
});

test.each([
  ["execute", "a command"],
  ["write_file", "“Write file”"],
  ["issues__list_open-issues", "“List open issues” of issues"],
])("the call of %s is asked about as %s", (name, words) => expect(callWords(name)).toBe(words));
