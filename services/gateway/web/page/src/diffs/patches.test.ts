import { expect, test } from "vitest";
import { patchesOf } from "./patches.ts";

const CHANGED = "diff --git a/a.txt b/a.txt\nindex 1..2\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+b\n";
const DELETED = "diff --git a/b.txt b/b.txt\n--- a/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n";
const BINARY = "diff --git a/c d.png b/c d.png\nBinary files a/c d.png and b/c d.png differ\n";

test("a patch is split at its files, also deleted and binary ones", () => {
  expect(patchesOf(CHANGED + DELETED + BINARY)).toEqual([
    { path: "a.txt", patch: CHANGED },
    { path: "b.txt", patch: DELETED },
    { path: "c d.png", patch: BINARY },
  ]);
});

test("a line of a file that looks like a head splits nothing", () => {
  const tricky = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+ diff --git a/x b/x\n";
  expect(patchesOf(tricky)).toEqual([{ path: "a", patch: tricky }]);
});

test("an empty patch has no files", () => {
  expect(patchesOf("")).toEqual([]);
});
