import { expect, test } from "vitest";
import { extentOf, pathsWithoutText, type Report } from "./reports.ts";

const REPORT: Report = {
  applied: false,
  merged_paths: ["a.txt", "b.png"],
  conflicts: [{ path: "c.txt", kind: "content", preview: null }],
  omitted: 0,
  patches: [{ path: "a.txt", patch: "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,3 @@\n one\n-two\n+2\n+3\n" }],
  left_out_paths: [],
};

test("files and lines are counted without the heads of patches", () => {
  expect(extentOf(REPORT)).toEqual({ files: 3, added: 2, deleted: 1 });
});

test("what has no text to show is named", () => {
  expect(pathsWithoutText(REPORT)).toEqual(["b.png"]);
});
