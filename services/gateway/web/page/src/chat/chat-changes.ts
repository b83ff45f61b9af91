/** Changes of a chat by its owner, over the version that the person saw. */
import { answered, api, unchangedSince } from "../api/client.ts";
import { Problem } from "../api/problem.ts";
import type { components } from "../api/schema.d.ts";
import type { Chat } from "../api/types.ts";
import { upsert } from "../stream/feed.ts";

type ChatChanges = components["schemas"]["UpdateChatBody"];

/** A chat that runs has another version after every step, so that several attempts may be overtaken. */
const ATTEMPTS_MAX = 4;
const CHANGED = 412;

/** Somebody else changed what the person is about to change; it was not overwritten. */
export class ChangedMeanwhile extends Error {
  readonly current: Chat;

  constructor(current: Chat, words: string) {
    super(words);
    this.current = current;
  }
}

/**
 * Change a chat as the person saw it. A version that differs in other things alone, such as the
 * steps of a turn, is no conflict: the change is made over that one.
 */
export async function changeChat(seen: Chat, changes: ChatChanges): Promise<Chat> {
  const path = { chat_id: seen.id };
  let known = seen;
  for (let attempt = 1; ; attempt += 1) {
    try {
      const params = { path, header: unchangedSince(known) };
      const changed = await answered(api.PATCH("/api/v1/chats/{chat_id}", { params, body: changes }));
      // Later events have the change already, or a later one.
      upsert(changed);
      return changed;
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== CHANGED || attempt === ATTEMPTS_MAX) throw error;
      known = await answered(api.GET("/api/v1/chats/{chat_id}", { params: { path } }));
      if (differs(seen, known, changes)) throw new ChangedMeanwhile(known, error.message);
    }
  }
}

/** Whether two versions differ in what is changed; a place among the pinned moves with the others. */
function differs(seen: Chat, known: Chat, changes: ChatChanges): boolean {
  const names = (Object.keys(changes) as (keyof ChatChanges & keyof Chat)[]).filter((name) => name !== "pin_order");
  return names.some((name) => JSON.stringify(seen[name]) !== JSON.stringify(known[name]));
}
