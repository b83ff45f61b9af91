/** What the field for messages says: what becomes of a message that is sent now. */
import type { ChatStatus, RequiredAction } from "../api/types.ts";

/** A message is the answer of a question, and refuses a plan. Beside other actions it is queued. */
export function placeholderOf(status: ChatStatus | null, required: RequiredAction | null): string {
  if (status === "running" || status === "interrupting") return "Write on; it is sent after this turn";
  if (status !== "requires_action") return "Write a message";
  const kinds = new Set(required?.actions.map((each) => each.kind));
  if (kinds.has("question")) return "Answer in your own words";
  if (kinds.has("plan")) return "Say what to change in the plan";
  if (kinds.has("approval") || kinds.has("loop") || kinds.has("login") || kinds.has("elicitation")) return "Sent after this turn; answer above";
  return "Write on; it is sent after this turn";
}
