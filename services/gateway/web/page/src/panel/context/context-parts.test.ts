import { expect, test } from "vitest";
import { sharesOf, titleOf } from "./context-parts.ts";

test("parts fill the bar one after the other, and what is used beyond the window is the whole of it", () => {
  const parts = [{ kind: "tools", tokens: 25 }, { kind: "summary", tokens: 0 }, { kind: "history", tokens: 25 }];
  expect(sharesOf(parts, 100).map(({ start, width }) => [start, width])).toEqual([[0, 25], [25, 25]]);
  expect(sharesOf(parts, 10).map(({ start, width }) => [start, width])).toEqual([[0, 50], [50, 50]]);
  expect(sharesOf([], 0)).toEqual([]);
});

test("a part that is not known has its own name", () => {
  expect(titleOf("later_part")).toBe("Later part");
});
