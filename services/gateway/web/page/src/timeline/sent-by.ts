/**
 * Which messages of the owner the server wrote for a goal or a monitor. A message does not tell its origin, so
 * the sentences with which these begin and end are compared; the first message of a goal is its own text.
 */

/** A message of the server: what sent it, its first paragraph, and what follows. */
export interface Sent {
  by: "goal" | "monitor";
  head: string;
  rest: string;
}

const GOAL = /^The goal is not reached(?:: the check `|, says the model that judges it\. )[^]*\n\nContinue until (?:the check passes|it is reached)\.$/;
const MONITOR = /^Woken by a monitor: the background process \S+ \(`/;

export function sentBy(text: string): Sent | null {
  const by = GOAL.test(text) ? "goal" : MONITOR.test(text) ? "monitor" : null;
  if (!by) return null;
  const [head = "", ...others] = text.split("\n\n");
  return { by, head, rest: others.join("\n\n") };
}
