import { expect, test } from "vitest";
import type { Chat } from "../api/types.ts";
import { asksNothing, mayWaitForAgents } from "./conclusions.ts";

const CHAT = { id: "c1", owner_id: "u1", status: "requires_action", child_count: 2 } as unknown as Chat;

test("only a chat of one's own that has agents and waits may wait for them", () => {
  expect(mayWaitForAgents(CHAT, "u1")).toBe(true);
  expect(mayWaitForAgents(CHAT, "u2")).toBe(false);
  expect(mayWaitForAgents(CHAT, undefined)).toBe(false);
  expect(mayWaitForAgents({ ...CHAT, child_count: 0 }, "u1")).toBe(false);
  expect(mayWaitForAgents({ ...CHAT, status: "running" }, "u1")).toBe(false);
});

test("that nothing is asked is known only from the whole list", () => {
  expect(asksNothing(CHAT, { items: [{ chat_id: "c2" }], next_cursor: null })).toBe(true);
  expect(asksNothing(CHAT, { items: [{ chat_id: "c1" }], next_cursor: null })).toBe(false);
  expect(asksNothing(CHAT, { items: [{ chat_id: "c2" }], next_cursor: "next" })).toBe(false);
});
