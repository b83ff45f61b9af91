import { expect, test } from "vitest";
import { linesOf } from "../cards/diff.tsx";
import { sidesOf } from "./sides.ts";

test("deleted lines stand beside the added lines that follow them", () => {
  const lines = linesOf("@@ -1,4 +1,4 @@\n a\n-b\n-c\n+B\n d\n+e\n");
  expect(sidesOf(lines).map(({ before, after }) => [before?.text ?? null, after?.text ?? null])).toEqual([
    ["@@ -1,4 +1,4 @@", "@@ -1,4 +1,4 @@"],
    ["a", "a"],
    ["b", "B"],
    ["c", null],
    ["d", "d"],
    [null, "e"],
  ]);
});

test("an empty difference has no rows", () => {
  expect(sidesOf([])).toEqual([]);
});
