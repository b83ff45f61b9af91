import { expect, test } from "vitest";
import { jumpTarget } from "./scrolling.ts";

test("a jump goes to the nearest message on its side of the edge", () => {
  expect(jumpTarget([-300, -20, 0, 240, 700], -1)).toBe(1);
  expect(jumpTarget([-300, -20, 0, 240, 700], 1)).toBe(3);
  expect(jumpTarget([0, 200], -1)).toBeNull();
  expect(jumpTarget([-50, 0], 1)).toBeNull();
});
