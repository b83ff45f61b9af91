import { expect, test } from "vitest";
import type { Message } from "../api/types.ts";
import { endsTurn, itemsOf } from "./items.ts";

function message(id: number, role: Message["role"], type: "text" | "notice" = "text"): Message {
  return { id, role, content: [{ type, text: "said" }] } as unknown as Message;
}

test("a notice of a hook is a row of its own, and does not end a turn", () => {
  const messages = [message(1, "user"), message(2, "assistant"), message(3, "system", "notice"), message(4, "assistant"), message(5, "system", "notice")];
  const items = itemsOf(messages, null);
  expect(items.map((each) => each.kind)).toEqual(["user", "assistant", "notice", "assistant", "notice"]);
  expect(items.map((_, index) => endsTurn(items, index))).toEqual([false, false, false, true, true]);
});
