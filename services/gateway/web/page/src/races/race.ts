/** Races: one task for several models. */
import type { components } from "../api/schema.d.ts";
import type { Model } from "../api/types.ts";

export type Race = components["schemas"]["Race"];
export type Candidate = components["schemas"]["RaceCandidate"];

export const MODELS_MIN = 2;
export const MODELS_MAX = 6;
export function hasEnded(candidate: Candidate): boolean {
  return candidate.status === "done" || candidate.status === "failed";
}

/** Whether no candidate will do anything more; of a cancelled race some may never have started. */
export function isOver(found: Race): boolean {
  return found.candidates.every((each) => hasEnded(each) || (found.cancelled_at !== null && each.status === "starting"));
}

/** The candidates whose work is still to be checked, as a text that changes with them. */
export function uncheckedOf(found: Race): string {
  if (!found.check_command || found.cancelled_at) return "";
  return found.candidates.filter((each) => hasEnded(each) && !each.check).map((each) => each.position).join(",");
}

/** How the server is asked for a model: by name, which others read, unless two have the same. */
export function nameFor(modelId: string, models: readonly Model[]): string {
  const name = models.find((each) => each.id === modelId)?.name ?? modelId;
  return models.filter((each) => each.name === name).length === 1 ? name : modelId;
}

export function shownName(candidate: Candidate, models: readonly Model[]): string {
  const model = models.find((each) => each.id === candidate.model_id);
  return model?.display_name || model?.name || candidate.model;
}

/** The places of those that are best at something; none if there is nothing to choose between. */
export function bestOf(candidates: readonly Candidate[], figure: (each: Candidate) => number): ReadonlySet<number> {
  const ended = candidates.filter((each) => each.status === "done");
  const least = Math.min(...ended.map(figure));
  const best = ended.filter((each) => figure(each) === least);
  return new Set(best.length < ended.length ? best.map((each) => each.position) : []);
}
