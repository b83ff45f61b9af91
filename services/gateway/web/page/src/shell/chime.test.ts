import { expect, test } from "vitest";
import { hasEnded } from "./chime.ts";

test("a turn has ended when its chat waits again", () => {
  expect(hasEnded("running", "waiting")).toBe(true);
  expect(hasEnded("interrupting", "waiting")).toBe(true);
  expect(hasEnded("waiting", "waiting")).toBe(false);
  expect(hasEnded(undefined, "waiting")).toBe(false);
  expect(hasEnded("running", "error")).toBe(false);
  expect(hasEnded("running", "requires_action")).toBe(false);
});
