import { expect, test } from "vitest";
import { appended, KEPT_CHARACTERS } from "./output-text.ts";

test("output is appended, and of too much the end is kept", () => {
  expect(appended(null, "a")).toBe("a");
  expect(appended("a", "b")).toBe("ab");
  expect(appended("x".repeat(KEPT_CHARACTERS), "end")).toBe(`${"x".repeat(KEPT_CHARACTERS - 3)}end`);
});
