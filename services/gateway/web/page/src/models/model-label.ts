/** Names of models for people. */
import type { Model } from "../api/types.ts";

type Named = Pick<Model, "id" | "name" | "display_name" | "provider_display_name">;

/** Return the name of a model, with that of its provider where another model has the same. */
export function modelLabel(model: Named, all: readonly Named[]): string {
  const name = model.display_name || model.name;
  const isAmbiguous = all.some((each) => each.id !== model.id && (each.display_name || each.name) === name);
  return isAmbiguous ? withProvider(model) : name;
}

/** Return the name of a model and its provider. */
export function withProvider(model: Named): string {
  const name = model.display_name || model.name;
  return model.provider_display_name ? `${name} · ${model.provider_display_name}` : name;
}

/** Return models as the options of a select field. */
export function modelOptions(models: readonly Named[]): [string, string][] {
  return models.map((each) => [each.id, withProvider(each)]);
}
