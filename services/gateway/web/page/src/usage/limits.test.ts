import { expect, test } from "vitest";
import { moment } from "../ui/format.ts";
import { limitedOf, lookOf, sentenceOf } from "./limits.ts";

type Spend = Parameters<typeof limitedOf>[0];
const spend = (spent: number, limit: number) => ({ limit: { limit_micros: limit, period: "month" }, spent_micros: spent, resets_at: "2026-12-01T00:00:00Z" }) as unknown as Spend;
const quota = [
  { dimension: "live_workspaces", used: 4, limit: 5, how_to_free: "" },
  { dimension: "workspaces", used: 4, limit: null, how_to_free: "" },
  { dimension: "pids", used: 4, limit: 5, how_to_free: "" },
] as const;

test("the spending comes first, and what has no limit or no name is left out", () => {
  expect(limitedOf(spend(1e6, 4e6), quota).map(({ name, words, share }) => [name, words, share])).toEqual([
    ["Spent this month", "$1.00 of $4.00", 0.25],
    ["Running workspaces", "4 of 5", 0.8],
  ]);
  expect(limitedOf(undefined, [])).toEqual([]);
  expect(limitedOf(spend(0, 0), [])[0]?.share).toBe(1);
});

test("colours follow the share, and a limit that is reached is said with its end", () => {
  expect([0.5, 0.8, 1, 2].map(lookOf)).toEqual(["ok", "near", "over", "over"]);
  const [spending, live] = limitedOf(spend(4e6, 4e6), quota);
  const end = "2026-12-01T00:00:00Z";
  const noon = Date.parse("2026-11-19T12:00:00Z");
  expect(sentenceOf(spending!, end, noon)).toBe(`A limit is reached: spent this month, $4.00 of $4.00; it begins anew in 12 days, on ${moment(end)}`);
  expect(sentenceOf(live!, "2026-12-01T00:00:00Z")).toBe("Running workspaces: 4 of 5");
});
