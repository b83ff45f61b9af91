/** The own model of a purpose as one value of a select field. */
import type { components } from "../../api/schema.d.ts";

export type OwnModel = components["schemas"]["OwnModelOverride"];
export type OwnPurpose = components["schemas"]["OwnModelPurpose"];
type Body = Pick<OwnModel, "mode"> & Partial<Pick<OwnModel, "model_id" | "reasoning_effort">>;

/** Values of the field that are no ids of models. */
export const OF_CHAT = "mode:chat_default";
export const OF_INSTALLATION = "mode:installation_default";

/** Return the value of the field: the id of the model, or where the model comes from. */
export function valueOf(own: OwnModel | undefined): string {
  if (own?.mode === "model" && own.model_id) return own.model_id;
  return own?.mode === "installation_default" ? OF_INSTALLATION : OF_CHAT;
}

/** Return the body that stores a value of the field. */
export function bodyOf(value: string, effort: OwnModel["reasoning_effort"]): Body {
  if (value === OF_CHAT) return { mode: "chat_default" };
  if (value === OF_INSTALLATION) return { mode: "installation_default" };
  return { mode: "model", model_id: value, ...(effort ? { reasoning_effort: effort } : {}) };
}

/** Return the thresholds with one changed; an empty text is that of the model itself. */
export function withThreshold(percents: Readonly<Record<string, number>>, modelId: string, text: string): Record<string, number> {
  const { [modelId]: _, ...others } = percents;
  return text.trim() === "" ? others : { ...others, [modelId]: Number(text) };
}
