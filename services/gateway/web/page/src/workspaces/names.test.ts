// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { chosenBetween, nameOf } from "./names.ts";

const ID = "ba217784-0000-4000-8000-000000000001";
const TITLES = new Map([[ID, "Tides"]]);

test.each([
  [`chat-${ID}`, "Files of “Tides”"],
  ["chat-ba217784-0000-4000-8000-000000000002", "Files of a chat (ba217784)"],
  [`agent-${ID}`, "Copy of an agent (ba217784)"],
  ["chat-room", "chat-room"],
])("the workspace %s is named %s", (name, words) => expect(nameOf({ name }, TITLES)).toBe(words));

test("people do not choose the copies in which agents work", () => {
  const all = [{ id: "1", name: `agent-${ID}` }, { id: "2", name: `chat-${ID}` }, { id: "3", name: "tide" }];
  expect(chosenBetween(all, TITLES)).toEqual([{ id: "2", name: "Files of “Tides”" }, { id: "3", name: "tide" }]);
});
