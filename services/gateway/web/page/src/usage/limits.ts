/** What one may spend and have, and how much of it is used. */
import type { components } from "../api/schema.d.ts";
import { ahead, bytes, moment, money } from "../ui/format.ts";
import type { RingLook } from "../ui/ring.tsx";

type Spend = components["schemas"]["SpendStatus"];
type Quota = components["schemas"]["QuotaUsage"];

const NEAR = 0.8;
const DIMENSIONS: Partial<Record<NonNullable<Quota["dimension"]>, string>> = {
  live_workspaces: "Running workspaces",
  workspaces: "Workspaces with files",
  disk_bytes: "Disk",
};

export interface Limited {
  name: string;
  /** How much of how much. */
  words: string;
  share: number;
  /** Where more is said about it. */
  href: string;
}

/** Return what is limited, the spending first. */
export function limitedOf(spend: Spend | undefined, quota: readonly Quota[]): Limited[] {
  const limit = spend?.limit;
  const spending = limit
    ? [{ name: `Spent this ${limit.period}`, words: `${money(spend.spent_micros)} of ${money(limit.limit_micros)}`, share: shareOf(spend.spent_micros, limit.limit_micros), href: "/settings/usage" }]
    : [];
  const quotas = quota.flatMap(({ dimension, used, limit: most }) => {
    const name = dimension && DIMENSIONS[dimension];
    if (!name || !most) return [];
    const text = dimension === "disk_bytes" ? bytes : String;
    return [{ name, words: `${text(used)} of ${text(most)}`, share: shareOf(used, most), href: "/settings/workspaces" }];
  });
  return [...spending, ...quotas];
}

/** A limit of 0 is used up from the beginning. */
function shareOf(used: number, limit: number): number {
  return limit > 0 ? used / limit : 1;
}

export function lookOf(share: number): RingLook {
  return share >= 1 ? "over" : share >= NEAR ? "near" : "ok";
}

/** Return a sentence about what is nearest to its limit. */
export function sentenceOf(most: Limited, resetsAt: string | null, now = Date.now()): string {
  const reset = most.name.startsWith("Spent") && resetsAt ? `; it begins anew ${ahead(resetsAt, now)}, on ${moment(resetsAt)}` : "";
  if (most.share >= 1) return `A limit is reached: ${most.name.toLowerCase()}, ${most.words}${reset}`;
  return `${most.name}: ${most.words}${reset}`;
}
