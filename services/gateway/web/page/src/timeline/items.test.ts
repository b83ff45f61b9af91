import { expect, test } from "vitest";
import type { Message, Part } from "../api/types.ts";
import type { Tail } from "../stream/chat-state.ts";
import { endsTurn, type Item, itemsOf } from "./items.ts";

function message(id: number, role: Message["role"], type: "text" | "notice" = "text"): Message {
  return { id, role, content: [{ type, text: "said" }] } as unknown as Message;
}

test("a notice of a hook is a row of its own, and does not end a turn", () => {
  const messages = [message(1, "user"), message(2, "assistant"), message(3, "system", "notice"), message(4, "assistant"), message(5, "system", "notice")];
  const items = itemsOf(messages, null);
  expect(items.map((each) => each.kind)).toEqual(["user", "assistant", "notice", "assistant", "notice"]);
  expect(items.map((_, index) => endsTurn(items, index))).toEqual([false, false, false, true, true]);
});

test("a call of the preview has the result that came with it", () => {
  const call = { type: "tool-call", tool_call_id: "s", tool_name: "chat_summarized", args: {} } as Part;
  const result = { type: "tool-result", tool_call_id: "s", tool_name: "chat_summarized", result: { summary: "Tides." }, outcome: "done" } as Part;
  const tail = (...parts: Part[]): Tail => ({ historyVersion: 3, attempt: 1, seq: parts.length, isTruncated: false, parts: parts.map((part, at) => ({ key: String(at), part })) });
  const resultOf = (items: Item[]): unknown => items.flatMap((item) => (item.kind === "assistant" ? item.pieces : [])).map((piece) => (piece.kind === "call" ? piece.call.result : piece));
  expect(resultOf(itemsOf([], tail(call)))).toEqual([null]);
  expect(resultOf(itemsOf([], tail(call, result)))).toEqual([result]);
});
