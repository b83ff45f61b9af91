// @vitest-environment happy-dom
import { expect, test } from "vitest";
import type { Message } from "../../api/types.ts";
import { wordsOfCheckpoint } from "./checkpoint-words.ts";

const said = (id: number, at: string | null, text: string, role = "user"): Message =>
  ({ id, role, created_at: at, content: [{ type: "text", text }] }) as unknown as Message;

const MESSAGES = [
  said(1, "2026-11-19T10:00:00Z", "write the tide tables\nfor two harbours"),
  said(2, "2026-11-19T10:00:05Z", "done", "assistant"),
  said(3, "2026-11-19T11:00:00Z", "x".repeat(100)),
  said(4, null, "no time"),
];

test.each([
  ["page-2026-11-19T10-30-00-000Z", "2026-11-19T10:30:00Z", { prompt: "write the tide tables", note: "" }],
  ["before-0123456789abcdef", "2026-11-19T11:30:00Z", { prompt: `${"x".repeat(70)}…`, note: "before a restore" }],
  ["release-1", "2026-11-19T11:30:00Z", { prompt: `${"x".repeat(70)}…`, note: "release-1" }],
  ["page-2026-11-19T09-30-00-000Z", "2026-11-19T09:30:00Z", { prompt: "", note: "" }],
  ["release-1", null, { prompt: "", note: "release-1" }],
])("the checkpoint %s of %s is named by its turn", (label, at, words) => {
  expect(wordsOfCheckpoint(label, at, MESSAGES)).toEqual(words);
});
