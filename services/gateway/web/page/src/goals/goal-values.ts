/** What the form of a goal holds, and the request that it becomes. */
import type { components } from "../api/schema.d.ts";

export type Goal = components["schemas"]["Goal"];
type Body = components["schemas"]["SetGoalBody"];

export interface GoalValues {
  text: string;
  check_command: string;
  /** The model that judges whether the goal is reached; empty for none. */
  judge_model_id: string;
  turns: string;
  minutes: string;
  dollars: string;
}

const MICROS = 1e6;
const NUMBER = /^\d+(\.\d+)?$/;

/** The values of a form: those of a goal that is set again, or the budgets that the server would choose. */
export function valuesOf(goal: Goal | null): GoalValues {
  return {
    text: goal?.text ?? "",
    check_command: goal?.check_command ?? "",
    judge_model_id: goal?.judge_model_id ?? "",
    turns: String(goal?.turns_max || 20),
    minutes: String((goal?.seconds_max || 3600) / 60),
    dollars: goal?.cost_max_micros ? String(goal.cost_max_micros / MICROS) : "",
  };
}

/** What is wrong with the budgets that were typed, by field; the server judges the rest. */
export function problemsOf(values: GoalValues): Partial<Record<keyof GoalValues, string>> {
  const problems: Partial<Record<keyof GoalValues, string>> = {};
  if (!/^[1-9]\d*$/.test(values.turns.trim())) problems.turns = "Give a whole number of turns, 1 or more.";
  if (!NUMBER.test(values.minutes.trim()) || secondsOf(values) < 1) problems.minutes = "Give a number of minutes, more than 0.";
  const dollars = values.dollars.trim();
  if (dollars && !NUMBER.test(dollars)) problems.dollars = "Give a number of dollars such as 2.50, or leave it empty.";
  return problems;
}

function secondsOf(values: GoalValues): number {
  return Math.round(Number(values.minutes) * 60);
}

/** Whether it is said what to achieve, and by what it is known to be reached: a check, a judge or both. */
export function isComplete(values: GoalValues): boolean {
  return values.text.trim() !== "" && (values.check_command.trim() !== "" || values.judge_model_id !== "");
}

export function bodyOf(values: GoalValues): Body {
  return {
    text: values.text.trim(),
    check_command: values.check_command.trim(),
    judge_model_id: values.judge_model_id || null,
    turns_max: Number(values.turns),
    seconds_max: secondsOf(values),
    cost_max_micros: Math.round(Number(values.dollars.trim() || 0) * MICROS),
  };
}

/** Seconds of its time that a goal has used; time in which it is paused counts. */
export function secondsUsed(goal: Goal, now: number): number {
  const passed = goal.created_at ? (now - Date.parse(goal.created_at)) / 1000 : 0;
  return Math.min(Math.max(0, passed), goal.seconds_max);
}
