/** Deliveries and uses of secrets in words. */
import type { components } from "../../api/schema.d.ts";

export type Delivery = components["schemas"]["SecretDelivery"];
export type Use = components["schemas"]["SecretUse"];

export const DELIVERIES: readonly (readonly [Delivery, string])[] = [
  ["proxy", "Header of requests to its hosts"],
  ["git", "Git over HTTPS to its hosts"],
  ["environment", "Environment variable (programs see it)"],
];
const OUTCOMES: Record<NonNullable<Use["outcome"]>, string> = {
  given: "Given",
  not_placed: "Refused: the workspace is not on that node",
  not_granted: "Refused: not granted to the workspace",
  no_such_secret: "Refused: the secret is not stored any more",
  wrong_host: "Refused: none of its hosts",
};

export function deliveryWords(delivery: Delivery): string {
  return DELIVERIES.find(([each]) => each === delivery)?.[1] ?? delivery;
}

export function outcomeWords(outcome: Use["outcome"]): string {
  return outcome ? OUTCOMES[outcome] : "Asked for";
}

/** How often a workspace got each secret, by its name. */
export function usesOf(uses: readonly Use[], workspaceId: string): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const each of uses) {
    if (each.workspace_id === workspaceId && each.outcome === "given") found.set(each.secret_name, (found.get(each.secret_name) ?? 0) + 1);
  }
  return found;
}
