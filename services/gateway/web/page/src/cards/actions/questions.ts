/** The questions of an action, as the model asks them. */
import type { Action } from "../../api/types.ts";
import { record, string } from "../outcome.ts";

export interface Question {
  header: string;
  question: string;
  isMultiple: boolean;
  options: { label: string; description: string }[];
}

export function questionsOf(action: Action): Question[] {
  const given = record(action.args).questions;
  return (Array.isArray(given) ? given : []).map(record).map((each) => ({
    header: string(each.header),
    question: string(each.question),
    isMultiple: each.multi_select === true || each.multiple === true,
    options: (Array.isArray(each.options) ? each.options : [])
      .map(record)
      .map((option) => ({ label: string(option.label), description: string(option.description) })),
  }));
}
