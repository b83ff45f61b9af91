import { expect, test } from "vitest";
import { joinedDays, spanOf, splitDays } from "./span.ts";

const NOW = Date.parse("2026-11-18T13:14:15Z");

test("a number of days ends now and begins with a day", () => {
  expect(spanOf("7", NOW)).toEqual({ start: "2026-11-11T00:00:00.000Z" });
  expect(splitDays("7", NOW)).toEqual(["2026-11-11", "2026-11-18"]);
});

test("chosen days are both in the period, whichever is the first", () => {
  const chosen = joinedDays("2026-10-31", "2026-10-01");
  expect(splitDays(chosen)).toEqual(["2026-10-31", "2026-10-01"]);
  expect(spanOf(chosen, NOW)).toEqual({ start: "2026-10-01T00:00:00.000Z", end: "2026-11-01T00:00:00.000Z" });
  expect(spanOf(joinedDays("2026-10-01", ""), NOW)).toEqual({ start: "2026-10-01T00:00:00.000Z" });
  expect(spanOf(joinedDays("", ""), NOW)).toEqual({});
});

test("what is no day, or has a year of five digits, bounds nothing", () => {
  for (const each of ["2026-13-01", "12026-10-01", "+012026-10-01", "9999-12-31", "soon"]) {
    expect(spanOf(joinedDays(each, "2026-10-01"), NOW)).toEqual({ end: "2026-10-02T00:00:00.000Z" });
    expect(spanOf(joinedDays("2026-10-01", each), NOW)).toEqual({ start: "2026-10-01T00:00:00.000Z" });
  }
});
