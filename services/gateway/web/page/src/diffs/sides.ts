/** The lines of a difference side by side: what was beside what is. */
import type { linesOf } from "../cards/diff.tsx";

export type DiffLine = ReturnType<typeof linesOf>[number];

export interface SidesRow {
  before: DiffLine | null;
  after: DiffLine | null;
}

/** Pair deleted lines with the added ones that follow them. */
export function sidesOf(lines: readonly DiffLine[]): SidesRow[] {
  const rows: SidesRow[] = [];
  let deleted: DiffLine[] = [];
  let added: DiffLine[] = [];
  function flush(): void {
    for (let place = 0; place < Math.max(deleted.length, added.length); place += 1) {
      rows.push({ before: deleted[place] ?? null, after: added[place] ?? null });
    }
    deleted = [];
    added = [];
  }
  for (const line of lines) {
    if (line.kind === "deleted") {
      if (added.length) flush();
      deleted.push(line);
    } else if (line.kind === "added") added.push(line);
    else {
      flush();
      rows.push({ before: line, after: line });
    }
  }
  flush();
  return rows;
}
