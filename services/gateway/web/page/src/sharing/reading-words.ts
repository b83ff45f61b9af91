/** Why somebody can read a chat of another, in words. */
import type { components } from "../api/schema.d.ts";
import type { Chat } from "../api/types.ts";
import { ownerOf } from "./owner.ts";

type Access = Pick<components["schemas"]["BreakGlassAccess"], "expires_at">;

/** Say by what a chat is read: a share, or an open access of an administrator. */
export function readingWords(chat: Pick<Chat, "owner_name">, access: Access | undefined): string {
  if (!access) return `Shared with you by ${ownerOf(chat)}, who writes here; you can read along.`;
  const until = access.expires_at && ` until ${new Date(access.expires_at).toLocaleTimeString([], { timeStyle: "short" })}`;
  return `Break-glass${until || ""}; recorded, and shown to ${ownerOf(chat)}.`;
}
