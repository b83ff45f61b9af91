import { expect, test } from "vitest";
import type { Tail } from "./chat-state.ts";
import { lastWords } from "./live-line.ts";

const tail = (text: string): Tail => ({
  historyVersion: 1,
  attempt: 1,
  seq: 1,
  parts: [{ key: "assistant:0", part: { type: "text", text } }],
  isTruncated: false,
});

test("the last words of a preview are one line", () => {
  expect(lastWords(null)).toBe("");
  expect(lastWords(tail("One\n\ntwo  three "))).toBe("One two three");
  expect(lastWords(tail("word ".repeat(100)))).toMatch(/^….{90}$/);
});
