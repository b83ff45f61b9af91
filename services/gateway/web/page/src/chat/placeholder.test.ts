import { expect, test } from "vitest";
import type { ChatStatus, RequiredAction } from "../api/types.ts";
import { placeholderOf } from "./placeholder.ts";

test.each<[ChatStatus, string[], string]>([
  ["waiting", [], "Write a message"],
  ["error", [], "Write a message"],
  ["running", [], "Write on; it is sent after this turn"],
  ["interrupting", [], "Write on; it is sent after this turn"],
  ["requires_action", ["question"], "Answer in your own words"],
  ["requires_action", ["approval", "question"], "Answer in your own words"],
  ["requires_action", ["plan"], "Say what to change in the plan"],
  ["requires_action", ["approval"], "Sent after this turn; answer above"],
  ["requires_action", ["loop"], "Sent after this turn; answer above"],
  ["requires_action", ["login"], "Sent after this turn; answer above"],
  ["requires_action", ["client_tool", "elicitation"], "Sent after this turn; answer above"],
  ["requires_action", ["agents"], "Write on; it is sent after this turn"],
  ["requires_action", ["client_tool"], "Write on; it is sent after this turn"],
])("in %s with %j the field says what becomes of a message", (status, kinds, words) => {
  const required = { actions: kinds.map((kind) => ({ kind })) } as unknown as RequiredAction;
  expect(placeholderOf(status, required)).toBe(words);
});
