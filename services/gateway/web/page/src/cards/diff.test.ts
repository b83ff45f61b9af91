import { expect, test } from "vitest";
import { linesOf } from "./diff.tsx";

const shown = (diff: string) => linesOf(diff).map(({ kind, text, number }) => [kind, text, number]);

test("headers of a new file are no lines of it", () => {
  expect(shown("diff --git a/n b/n\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+one\n\\ No newline at end of file\n")).toEqual([
    ["place", "@@ -0,0 +1 @@", null],
    ["added", "one", 1],
  ]);
});

test("lines that look like headers are shown, and counted", () => {
  expect(shown("--- a/q.sql\n+++ b/q.sql\n@@ -1,3 +1,2 @@\n--- how many\n select 1;\n-\n+++ x\n").slice(1)).toEqual([
    ["deleted", "-- how many", 1],
    ["same", "select 1;", 1],
    ["deleted", "", 3],
    ["added", "++ x", 2],
  ]);
});

test("what changed without lines is said", () => {
  expect(shown("diff --git a/p.png b/p.png\nindex 0..1 100644\nBinary files a/p.png and b/p.png differ\n")).toEqual([
    ["place", "Binary files a/p.png and b/p.png differ", null],
  ]);
  expect(shown("diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\n@@ -1 +1 @@\n-a\n+b\n").slice(0, 2)).toEqual([
    ["place", "rename from x", null],
    ["place", "rename to y", null],
  ]);
});
