/** Whose chat is read: what only its owner may do is not offered to its readers. */
import { useQuery } from "@tanstack/react-query";
import { chat as chatQuery, me } from "../api/queries.ts";
import type { Chat } from "../api/types.ts";

export function ownerOf({ owner_name }: Pick<Chat, "owner_name">): string {
  return owner_name || "its owner";
}

/** Whether a chat is somebody else's; not before it is known who is signed in. */
export function useIsReader({ owner_id }: Pick<Chat, "owner_id">): boolean {
  const who = useQuery(me).data;
  return who !== undefined && who.id !== owner_id;
}

/** Whether a chat is one's own; what only owners may read is not asked for before this is known. */
export function useIsOwner({ owner_id }: Pick<Chat, "owner_id">): boolean {
  return useQuery(me).data?.id === owner_id;
}

/** Return the name of the owner of an open chat that is somebody else's. */
export function useOtherOwner(chatId: string): string | null {
  const chat = useQuery({ ...chatQuery(chatId), enabled: false }).data;
  const who = useQuery({ ...me, enabled: false }).data;
  return chat && who && chat.owner_id !== who.id ? ownerOf(chat) : null;
}
