/** The parts of a prompt as pieces of one bar. */
const TITLES: Record<string, string> = {
  system_prompt: "Instructions of Parley, administrators and you",
  instructions: "Instruction files",
  tools: "Tools",
  summary: "Summary of what was before",
  history: "Messages",
};

export interface Share {
  kind: string;
  tokens: number;
  /** In percent of the bar. */
  start: number;
  width: number;
}

/** A part that a newer server names is shown under that name. */
export function titleOf(kind: string): string {
  return TITLES[kind] ?? kind.charAt(0).toUpperCase() + kind.slice(1).replaceAll("_", " ");
}

/** Place the parts one after the other; the whole bar is the window, or what is used if that is more. */
export function sharesOf(parts: readonly { kind: string | null; tokens: number }[], limit: number): Share[] {
  const used = parts.reduce((sum, part) => sum + part.tokens, 0);
  const whole = Math.max(limit, used, 1);
  let start = 0;
  return parts
    .filter((part) => part.tokens > 0)
    .map((part) => {
      const width = (part.tokens / whole) * 100;
      const share = { kind: part.kind ?? "", tokens: part.tokens, start, width };
      start += width;
      return share;
    });
}
