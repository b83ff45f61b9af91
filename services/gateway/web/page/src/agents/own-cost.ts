/** What a chat alone cost, which is not what its tree cost. */
import type { components } from "../api/schema.d.ts";
import { money } from "../ui/format.ts";

type Usage = Pick<components["schemas"]["GetChatUsageResponse"], "own_cost_micros">;

/** The cost of a chat without those above and below it; empty if none of its calls has a known price. */
export function ownCost(usage: Usage | undefined): string {
  const micros = usage?.own_cost_micros ?? null;
  return micros === null ? "" : money(micros);
}
