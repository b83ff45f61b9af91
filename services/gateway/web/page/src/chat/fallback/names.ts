/** Names of what a chat may have as its fallback model. */
import type { Model } from "../../api/types.ts";

/** As the installation has it: the chat names none. */
export const AS_FOR_ALL = "";
/** No model at all, whatever the installation has. */
export const NONE = "none";

type Named = Pick<Model, "id" | "name" | "display_name">;

export function nameOf(id: string | null, forAll: string | null, all: readonly Named[]): string {
  if (!id) return `As configured for all: ${forAll ? modelName(forAll, all) : "none"}`;
  return id === NONE ? "None: the turn waits and tries again" : modelName(id, all);
}

function modelName(id: string, all: readonly Named[]): string {
  const found = all.find((each) => each.id === id || each.name === id);
  return found ? found.display_name || found.name : "A model that is gone";
}
