import { expect, test } from "vitest";
import { type Draft, NO_DRAFT, withRefused } from "./drafts.ts";

const FILE = { id: "f1", name: "a.txt", mediaType: "text/plain", sizeBytes: 1 };
const OTHER = { ...FILE, id: "f2" };
const LINE = { fileName: "a.py", startLine: 1, endLine: 1, content: "x", comment: "why" };
const SENT: Draft = { text: "first", files: [FILE], references: [LINE] };

test("a refused draft comes back as it was", () => {
  expect(withRefused(NO_DRAFT, SENT)).toEqual(SENT);
  expect(withRefused(SENT, SENT)).toEqual(SENT);
});

test("what was written since follows a refused draft", () => {
  const since: Draft = { text: "second", files: [FILE, OTHER], references: [] };
  expect(withRefused(since, SENT)).toEqual({ text: "first\n\nsecond", files: [FILE, OTHER], references: [LINE] });
  expect(withRefused(since, { ...SENT, text: "" }).text).toBe("second");
});
