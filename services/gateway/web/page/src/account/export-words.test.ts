import { expect, test } from "vitest";
import { canBegin, collected } from "./export-words.ts";

test("files and bytes are counted", () => {
  expect(collected({ entries: 1, size_bytes: 512 })).toBe("1 file, 512 B before compression");
  expect(collected({ entries: 12, size_bytes: 3 * 1024 ** 2 })).toBe("12 files, 3 MiB before compression");
});

test("one export is made at a time, and a failed one may be begun again", () => {
  expect(canBegin([])).toBe(true);
  expect(canBegin([{ state: "complete" }, { state: "failed" }])).toBe(true);
  expect(canBegin([{ state: "complete" }, { state: "running" }])).toBe(false);
});
