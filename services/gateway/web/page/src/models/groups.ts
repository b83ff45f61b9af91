/** Models in the groups of their providers, narrowed by what is typed. */
import type { Model } from "../api/types.ts";

export interface ModelGroup {
  title: string;
  models: readonly Model[];
}

const OTHERS = "Other providers";
const FAVOURITES = "Favourites";

/** Return the models that a picker offers: those that are on, without hidden ones unless chosen. */
export function offeredModels(models: readonly Model[], chosenId: string | null): Model[] {
  return models.filter((each) => each.enabled && (!each.is_hidden || each.id === chosenId));
}

/** Group models by the names of their providers, after favourites; those of providers without a known name come last. */
export function groupsOfModels(models: readonly Model[], words: string): ModelGroup[] {
  const typed = words.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const titleOf = (model: Model): string => model.provider_display_name || OTHERS;
  const fitting = models.filter((each) => {
    const said = `${each.display_name} ${each.name} ${titleOf(each)}`.toLowerCase();
    return typed.every((word) => said.includes(word));
  });
  const favourites = fitting.filter((each) => each.is_favourite);
  const groups = Map.groupBy(fitting.filter((each) => !each.is_favourite), titleOf);
  const titles = [...groups.keys()].toSorted((a, b) => Number(a === OTHERS) - Number(b === OTHERS) || a.localeCompare(b));
  const byProvider = titles.map((title) => ({ title, models: groups.get(title) ?? [] }));
  return favourites.length > 0 ? [{ title: FAVOURITES, models: favourites }, ...byProvider] : byProvider;
}
