/** Lists that are typed as lines. */
export function linesOf(text: string): string[] {
  return text.split("\n").map((each) => each.trim()).filter(Boolean);
}

/** Read lines such as `Name: value`. */
export function pairsOf(text: string): [string, string][] {
  return linesOf(text).map((line) => {
    const at = line.indexOf(":");
    return at < 0 ? [line, ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  });
}
