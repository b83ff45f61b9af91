/** What a monitor of a process waits for, and what became of it, in words. */
import type { components } from "../api/schema.d.ts";

export type Monitor = components["schemas"]["Monitor"];

/** Whether it can still wake its chat. */
export function isLive(monitor: Monitor): boolean {
  return monitor.state === "waiting" || monitor.state === "due";
}

/** Why a chat is woken; empty while there is no cause. */
function causeOf({ cause, detail }: Monitor): string {
  switch (cause) {
    case "matched":
      return `The process printed: ${detail ?? ""}`;
    case "exited":
      return detail ? `The process ended: ${detail}` : "The process ended.";
    case "lost":
      return "The process cannot be watched any more.";
    case "timed_out":
      return "Nothing of this happened in time.";
    default:
      return "";
  }
}

/** What became of a monitor, or what is still to come. */
export function wordsOfMonitor(monitor: Monitor, time: (at: string) => string): string {
  const cause = causeOf(monitor);
  if (monitor.state === "ended") return [cause, monitor.reason ?? ""].filter(Boolean).join(" ");
  if (monitor.state === "due") return `${cause} The chat is woken when it is at rest.`;
  if (monitor.state === "woken") return cause;
  return monitor.expires_at ? `The chat is woken at ${time(monitor.expires_at)} at the latest.` : "";
}
