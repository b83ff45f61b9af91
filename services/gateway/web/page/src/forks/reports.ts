/** What a fork of a workspace changed, and what became of applying it. */
import type { components } from "../api/schema.d.ts";

export type Report = components["schemas"]["MergeReport"];
export type Strategy = components["schemas"]["MergeStrategy"];

export type Applied = components["schemas"]["AppliedMerge"];

export interface Extent {
  files: number;
  added: number;
  deleted: number;
}

/** Whether all changes of a fork were applied, some are left, or there were none; null as long as that is not known. */
export function standingOf(report: Report | undefined): "applied" | "left" | "none" | null {
  if (!report) return null;
  if (report.merged_paths.length + report.conflicts.length + report.omitted > 0) return "left";
  return report.applied_merges.length > 0 ? "applied" : "none";
}

/** How many files and lines were changed, those that were applied included. */
export function extentOf(report: Report): Extent {
  const merges = [report, ...report.applied_merges];
  const lines = merges.flatMap((merge) => merge.patches).flatMap((each) => each.patch.split("\n"));
  const count = (sign: string): number => lines.filter((line) => line.startsWith(sign) && !line.startsWith(sign.repeat(3))).length;
  const applied = report.applied_merges.flatMap((each) => each.paths);
  const paths = new Set([...report.merged_paths, ...report.conflicts.map((each) => each.path), ...applied]);
  return {
    files: paths.size + merges.reduce((sum, each) => sum + each.omitted, 0),
    added: count("+"),
    deleted: count("-"),
  };
}

/** The paths that changed and have no text to show. */
export function pathsWithoutText(report: Report): string[] {
  const shown = new Set([...report.patches, ...report.conflicts].map((each) => each.path));
  return report.merged_paths.filter((path) => !shown.has(path));
}

/** The paths of a merge that have no text to show. */
export function appliedWithoutText(applied: Applied): string[] {
  const shown = new Set(applied.patches.map((each) => each.path));
  return applied.paths.filter((path) => !shown.has(path));
}
