/** What is said of an export of an account. */
import type { AccountExport } from "../api/types.ts";
import { bytes, plural } from "../ui/format.ts";

/** Return what an export has by now. */
export function collected({ entries, size_bytes }: Pick<AccountExport, "entries" | "size_bytes">): string {
  return `${plural(entries, "file")}, ${bytes(size_bytes)} before compression`;
}

/** Return whether another export can be begun: none while one is made. */
export function canBegin(exports: readonly Pick<AccountExport, "state">[]): boolean {
  return exports.every((each) => each.state !== "running");
}
