/** What a server of a workspace runs, and where it is, in words. */
import type { components } from "../../api/schema.d.ts";

export type WorkspaceServer = components["schemas"]["WorkspaceServer"];

export interface StateWords {
  words: string;
  badge: "" | "is-accent" | "is-warn" | "is-bad";
}

const STATES: Record<NonNullable<WorkspaceServer["state"]>, StateWords> = {
  invalid: { words: "cannot be used", badge: "is-bad" },
  untrusted: { words: "not trusted", badge: "" },
  trusted: { words: "trusted", badge: "is-accent" },
  running: { words: "running", badge: "is-accent" },
  failed: { words: "failed", badge: "is-bad" },
};

export function stateWords(server: WorkspaceServer): StateWords {
  if (server.state === "untrusted" && server.changed_since_trust) {
    return { words: "changed since it was trusted", badge: "is-warn" };
  }
  return server.state ? STATES[server.state] : { words: "unknown", badge: "" };
}

/** What will run, piece by piece: nothing is joined, so no piece can look like two. */
export function piecesOf(server: WorkspaceServer): { name: string; value: string }[] {
  return [
    { name: "Program", value: server.command ?? "" },
    ...server.arguments.map((value, place) => ({ name: `Argument ${place + 1}`, value })),
    ...Object.entries(server.environment)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, value]) => ({ name: `Variable ${name}`, value })),
  ];
}
