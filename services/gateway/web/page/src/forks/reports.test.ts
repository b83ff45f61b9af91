import { expect, test } from "vitest";
import { type Applied, appliedWithoutText, extentOf, pathsWithoutText, type Report, standingOf } from "./reports.ts";

const REPORT: Report = {
  applied: false,
  merged_paths: ["a.txt", "b.png"],
  conflicts: [{ path: "c.txt", kind: "content", preview: null }],
  omitted: 0,
  patches: [{ path: "a.txt", patch: "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,3 @@\n one\n-two\n+2\n+3\n" }],
  left_out_paths: [],
  applied_merges: [],
};
const APPLIED: Applied = {
  applied_at: "2026-01-02T03:04:05Z",
  paths: ["a.txt", "d.png"],
  omitted: 0,
  patches: [{ path: "a.txt", patch: "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-0\n+1\n" }],
};

test("files and lines are counted without the heads of patches", () => {
  expect(extentOf(REPORT)).toEqual({ files: 3, added: 2, deleted: 1 });
});

test("what was applied counts as changed, each file once", () => {
  expect(extentOf({ ...REPORT, applied_merges: [APPLIED] })).toEqual({ files: 4, added: 3, deleted: 2 });
  expect(appliedWithoutText(APPLIED)).toEqual(["d.png"]);
});

test("what has no text to show is named", () => {
  expect(pathsWithoutText(REPORT)).toEqual(["b.png"]);
});

test("a fork whose changes were all applied is told from one that has some left, and from one without", () => {
  const none = { ...REPORT, merged_paths: [], conflicts: [] };
  expect([undefined, REPORT, { ...REPORT, applied_merges: [APPLIED] }, { ...none, applied_merges: [APPLIED] }, none].map(standingOf)).toEqual([
    null, "left", "left", "applied", "none",
  ]);
});
