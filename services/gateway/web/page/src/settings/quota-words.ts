/** What one may have of each thing that is limited, in words. */
import type { components } from "../api/schema.d.ts";
import { bytes } from "../ui/format.ts";

type Quota = components["schemas"]["QuotaUsage"];
type Dimension = NonNullable<Quota["dimension"]>;

const TITLES: Record<Dimension, string> = {
  live_workspaces: "Running workspaces",
  workspaces: "Workspaces with files",
  cpu_millicores: "Processors",
  memory_bytes: "Memory",
  pids: "Processes",
  disk_bytes: "Disk",
  egress_bytes: "Sent to the network",
};

export function titleOf({ dimension }: Quota): string {
  return dimension ? TITLES[dimension] : "Other";
}

/** Say how much is used, and of how much if there is a limit. */
export function wordsOf({ dimension, used, limit }: Quota): string {
  const shown = (value: number): string =>
    dimension?.endsWith("_bytes") ? bytes(value) : dimension === "cpu_millicores" ? String(value / 1000) : String(value);
  return limit === null ? shown(used) : `${shown(used)} of ${shown(limit)}`;
}
