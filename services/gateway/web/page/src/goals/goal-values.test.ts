import { expect, test } from "vitest";
import { bodyOf, type Goal, problemsOf, secondsUsed, valuesOf } from "./goal-values.ts";

const GOAL = {
  text: "Mend it",
  check_command: "make test",
  turns_max: 10,
  seconds_max: 90,
  cost_max_micros: 2_500_000,
  created_at: "2026-11-17T10:00:00Z",
} as Goal;

test("a goal that is set again is sent as it was", () => {
  const { created_at: _, ...body } = GOAL;
  expect(bodyOf(valuesOf(GOAL))).toEqual(body);
});

test("an empty form has the budgets of the server and no limit of money", () => {
  const body = bodyOf({ ...valuesOf(null), text: " a ", check_command: " b " });
  expect(body).toEqual({ text: "a", check_command: "b", turns_max: 20, seconds_max: 3600, cost_max_micros: 0 });
});

test("budgets that are no numbers are refused at their fields", () => {
  const values = { ...valuesOf(null), turns: "1.5", minutes: "0", dollars: "two" };
  expect(Object.keys(problemsOf(values))).toEqual(["turns", "minutes", "dollars"]);
  expect(problemsOf(valuesOf(GOAL))).toEqual({});
});

test("the time of a goal ends with its budget, and clocks that differ give none", () => {
  const begun = Date.parse("2026-11-17T10:00:00Z");
  expect([begun - 5_000, begun + 30_000, begun + 900_000].map((now) => secondsUsed(GOAL, now))).toEqual([0, 30, 90]);
});
