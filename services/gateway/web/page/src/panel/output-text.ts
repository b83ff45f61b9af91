/** The text of an output that grows. */

/** So much of the end of an output is kept. */
export const KEPT_CHARACTERS = 200_000;

/** Append what came, and keep the end. */
export function appended(before: string | null, text: string): string {
  return `${before ?? ""}${text}`.slice(-KEPT_CHARACTERS);
}
