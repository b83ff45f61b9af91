import { describe, expect, it } from "vitest";
import type { Message } from "../api/types.ts";
import { EMPTY } from "../stream/chat-state.ts";
import { isOpen, loadedTodos, newestTodos } from "./todos.ts";

function told(id: number, outcome: string, ...texts: string[]): Message {
  const todos = texts.map((text, place) => ({ id: place + 1, text, status: "pending" }));
  const part = { type: "tool-result", tool_call_id: `c${id}`, tool_name: "todo", outcome, result: { ok: true, todos } };
  return { id, role: "tool", content: [part] } as unknown as Message;
}

describe("the to-do list of a chat", () => {
  it("is that of the newest call that succeeded", () => {
    const messages = [told(1, "done", "one"), told(2, "done", "two"), told(3, "failed", "three")];
    expect(newestTodos(messages)).toEqual([{ id: 1, text: "two", status: "pending" }]);
    expect(newestTodos(messages.slice(0, 1))).toEqual([{ id: 1, text: "one", status: "pending" }]);
  });

  it("is unknown without a call", () => {
    expect(newestTodos([])).toBeNull();
  });

  it("is asked of the server if it may be among messages that are not loaded", () => {
    const messages = [told(1, "done", "one"), told(9, "failed", "nine")];
    expect(loadedTodos({ ...EMPTY, messages })).toEqual([{ id: 1, text: "one", status: "pending" }]);
    expect(loadedTodos({ ...EMPTY, messages, gapAfter: 1 })).toBeNull();
    expect(loadedTodos({ ...EMPTY, messages: messages.slice(1), hasOlder: true })).toBeNull();
    expect(loadedTodos({ ...EMPTY, messages: messages.slice(1) })).toEqual([]);
  });

  it("has open items while they are pending or in progress", () => {
    const statuses = ["pending", "in_progress", "done", "cancelled"];
    expect(statuses.map((status) => isOpen({ id: 1, text: "", status }))).toEqual([true, true, false, false]);
  });
});
