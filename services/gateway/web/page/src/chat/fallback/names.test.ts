import { expect, test } from "vitest";
import { AS_FOR_ALL, nameOf, NONE } from "./names.ts";

const ALL = [
  { id: "1", name: "plain", display_name: "" },
  { id: "2", name: "spare", display_name: "The spare one" },
];

test("a chat names a model, none, or what all chats have", () => {
  expect(nameOf("2", null, ALL)).toBe("The spare one");
  expect(nameOf("plain", null, ALL)).toBe("plain");
  expect(nameOf(NONE, "2", ALL)).toBe("None: the turn waits and tries again");
  expect(nameOf(AS_FOR_ALL, "2", ALL)).toBe("As configured for all: The spare one");
  expect(nameOf(null, null, ALL)).toBe("As configured for all: none");
});

test("a model that was deleted is not passed over in silence", () => {
  expect(nameOf("3", null, ALL)).toBe("A model that is gone");
});
