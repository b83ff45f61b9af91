/** Whether an agent works in a copy of the files, and whether its work can be taken over. */
import type { Chat } from "../api/types.ts";

/** Whether an agent works in a fork, which has the id of its chat. */
function isForked(agent: Chat): boolean {
  return agent.parent_chat_id !== null && agent.workspace_id === agent.id;
}

/** Whether an agent does nothing any more, and nothing waits for it. */
function hasEnded(agent: Chat): boolean {
  return (agent.status === "waiting" || agent.status === "error") && agent.queue_length === 0;
}

/** Whether a user can look at the changes of an agent and apply them: it is theirs, works in a fork and has ended. */
export function hasChanges(agent: Chat, userId: string | undefined): boolean {
  return isForked(agent) && hasEnded(agent) && agent.owner_id === userId;
}
