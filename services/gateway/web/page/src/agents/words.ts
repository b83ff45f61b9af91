/** What is said of an agent: its model with the effort, and why it failed. */
import type { Chat, Model } from "../api/types.ts";
import { record, string } from "../cards/outcome.ts";
import { modelLabel } from "../models/model-label.ts";

type Choice = Pick<Chat, "model_id" | "reasoning_effort">;

/** Return the model of an agent and its effort; empty for a model that is not known here. */
export function modelWords(agent: Choice, models: readonly Model[]): string {
  const model = models.find((each) => each.id === agent.model_id);
  if (!model) return "";
  const name = modelLabel(model, models);
  return agent.reasoning_effort ? `${name}, effort ${agent.reasoning_effort}` : name;
}

/** Return why an agent failed and what can be done, from a result; older results have one text. */
export function failureWords(error: unknown): string {
  const told = record(error);
  if (!string(told.message)) return string(error);
  const kind = string(told.kind);
  return [kind && `${kind}:`, string(told.message), string(told.remedy)].filter(Boolean).join(" ");
}
