/** Accesses of administrators to chats; members see those to their own. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";
import type { Chat } from "../api/types.ts";

export const BREAK_GLASS = "break-glass";

export function accesses(includesEnded: boolean) {
  return queryOptions({
    queryKey: [BREAK_GLASS, includesEnded],
    queryFn: ({ signal }) =>
      answered(api.GET("/api/v1/break-glass", { params: { query: { limit: 100, ...(includesEnded ? { include_ended: true } : {}) } }, signal })),
  });
}

/** Return the open access by which somebody reads a chat of another; none if it is shared with them. */
export function useOwnAccess(chat: Chat | undefined, who: { id: string } | undefined): components["schemas"]["BreakGlassAccess"] | undefined {
  const isOpened = chat !== undefined && who !== undefined && chat.owner_id !== who.id && chat.break_glass_open === true;
  const { data } = useQuery({ ...accesses(false), enabled: isOpened });
  if (!isOpened) return undefined;
  return data?.items.find((each) => each.is_open && each.administrator_id === who.id && each.user_id === chat.owner_id);
}
