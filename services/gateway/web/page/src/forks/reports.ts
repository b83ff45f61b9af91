/** What a fork of a workspace changed, and what became of applying it. */
import type { components } from "../api/schema.d.ts";

export type Report = components["schemas"]["MergeReport"];
export type Strategy = components["schemas"]["MergeStrategy"];

export interface Extent {
  files: number;
  added: number;
  deleted: number;
}

/** How many files and lines differ. */
export function extentOf(report: Report): Extent {
  const lines = report.patches.flatMap((each) => each.patch.split("\n"));
  const count = (sign: string): number => lines.filter((line) => line.startsWith(sign) && !line.startsWith(sign.repeat(3))).length;
  return {
    files: report.merged_paths.length + report.conflicts.length + report.omitted,
    added: count("+"),
    deleted: count("-"),
  };
}

/** The paths that changed and have no text to show. */
export function pathsWithoutText(report: Report): string[] {
  const shown = new Set([...report.patches, ...report.conflicts].map((each) => each.path));
  return report.merged_paths.filter((path) => !shown.has(path));
}
