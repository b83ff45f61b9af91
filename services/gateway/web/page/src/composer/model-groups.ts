/** Models in the groups of their providers, narrowed by what is typed. */
import type { Model } from "../api/types.ts";

export interface ModelGroup {
  title: string;
  models: readonly Model[];
}

const OTHERS = "Other providers";

/** Group models by the names of their providers; those of providers without a known name come last. */
export function groupsOfModels(models: readonly Model[], names: ReadonlyMap<string, string>, words: string): ModelGroup[] {
  const typed = words.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const titleOf = (model: Model): string => names.get(model.provider_id) ?? OTHERS;
  const fitting = models.filter((each) => {
    const said = `${each.display_name} ${each.name} ${titleOf(each)}`.toLowerCase();
    return typed.every((word) => said.includes(word));
  });
  const groups = Map.groupBy(fitting, titleOf);
  const titles = [...groups.keys()].toSorted((a, b) => Number(a === OTHERS) - Number(b === OTHERS) || a.localeCompare(b));
  return titles.map((title) => ({ title, models: groups.get(title) ?? [] }));
}
