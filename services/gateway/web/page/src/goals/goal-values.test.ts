import { expect, test } from "vitest";
import { bodyOf, type Goal, isComplete, problemsOf, secondsUsed, valuesOf } from "./goal-values.ts";

const GOAL = {
  text: "Mend it",
  check_command: "make test",
  judge_model_id: "m1",
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
  expect(body).toEqual({ text: "a", check_command: "b", judge_model_id: null, turns_max: 20, seconds_max: 3600, cost_max_micros: 0 });
});

test("a goal needs a check command, a judge or both", () => {
  const values = { ...valuesOf(null), text: "a" };
  expect(isComplete(values)).toBe(false);
  expect(isComplete({ ...values, check_command: "b" })).toBe(true);
  expect(isComplete({ ...values, judge_model_id: "m1" })).toBe(true);
  expect(isComplete({ ...values, text: " ", judge_model_id: "m1" })).toBe(false);
});

test("a goal that only has a judge is set again with it", () => {
  const judged = { ...GOAL, check_command: "" };
  expect(isComplete(valuesOf(judged))).toBe(true);
  expect(bodyOf(valuesOf(judged))).toMatchObject({ check_command: "", judge_model_id: "m1" });
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
