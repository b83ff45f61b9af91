import { expect, test } from "vitest";
import { money } from "../ui/format.ts";
import { ownCost } from "./own-cost.ts";

test("an agent has its own cost, not that of the tree", () => {
  const usage = { own_cost_micros: 250_000, totals: { cost_micros: 9_000_000 } };
  expect(ownCost(usage)).toBe(money(250_000));
  expect(ownCost({ own_cost_micros: 0 })).toBe(money(0));
});

test("without a known price there is no cost", () => {
  expect(ownCost(undefined)).toBe("");
  expect(ownCost({ own_cost_micros: null })).toBe("");
});
