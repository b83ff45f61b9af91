import { expect, test } from "vitest";
import { LINES_MAX, withLines } from "./log-lines.ts";

type Events = Parameters<typeof withLines>[1];

const line = (sequence: number) => ({ sequence, logged_at: null, stage: "setup", text: `line ${sequence}` });
const events = (...sequences: number[]) =>
  sequences.map((each) => ({ type: "log_line", workspace_id: "w1", log_line: line(each) })) as Events;

test("lines that come again after a lost connection are shown once", () => {
  const first = withLines([], events(1, 2));
  expect(withLines(first, events(1, 2, 3)).map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
  expect(withLines(first, [{ type: "workspace" }] as unknown as Events)).toBe(first);
});

test("of a long log the newest lines are kept", () => {
  const long = withLines([], events(...Array.from({ length: LINES_MAX + 5 }, (_, place) => place + 1)));
  expect([long.length, long[0]?.sequence]).toEqual([LINES_MAX, 6]);
});
