import { expect, test } from "vitest";
import { pauseMs } from "./connection.ts";

test("pauses between attempts grow to half a minute, and differ between clients", () => {
  const longest = Array.from({ length: 9 }, (_, failure) => pauseMs(failure + 1, () => 1));
  expect(longest).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  expect(pauseMs(3, () => 0)).toBe(1000);
});
