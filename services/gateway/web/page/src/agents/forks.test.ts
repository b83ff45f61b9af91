import { expect, test } from "vitest";
import type { Chat } from "../api/types.ts";
import { hasChanges } from "./forks.ts";

const AGENT = { id: "a1", workspace_id: "a1", parent_chat_id: "c1", owner_id: "u1", status: "waiting", queue_length: 0 } as Chat;

test.each([
  ["an agent that has ended in a fork", {}, true],
  ["one that stopped with an error", { status: "error" }, true],
  ["one at work", { status: "running" }, false],
  ["one that is being stopped", { status: "interrupting" }, false],
  ["one that waits for agents of its own", { status: "requires_action" }, false],
  ["one with a message in its queue", { queue_length: 1 }, false],
  ["one in the files of its root", { workspace_id: null }, false],
  ["one in the workspace of its root", { workspace_id: "w1" }, false],
  ["a chat with files of its own", { parent_chat_id: null }, false],
  ["one of another person", { owner_id: "u2" }, false],
])("%s", (_name, other, expected) => {
  expect(hasChanges({ ...AGENT, ...other } as Chat, "u1")).toBe(expected);
});

test("a person who is not known yet has no agents", () => {
  expect(hasChanges(AGENT, undefined)).toBe(false);
});
