/** Return the name in the first lines of a skill; empty if none is given. */
export function skillName(content: string): string {
  return /^name:[ \t]*["']?([a-z0-9-]+)/m.exec(content)?.[1] ?? "";
}
