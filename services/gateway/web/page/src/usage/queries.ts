/** What one may spend and have. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";
import { chatUsage, queryClient } from "../api/queries.ts";
import type { Chat } from "../api/types.ts";
import { useIsOwner } from "../sharing/owner.ts";

/** Read what a chat used, if it is one's own: others are not told. */
export function useChatUsage(chat: Chat) {
  return useQuery({ ...chatUsage(chat.id), enabled: useIsOwner(chat) });
}

export const spend = queryOptions({
  queryKey: ["me", "spend"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/me/spend", { signal })),
});
export const quota = queryOptions({
  queryKey: ["me", "quota"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/quota", { signal })),
});

/** Read the limits again, after something that changed how much of them is used. */
export function readLimitsAgain(): void {
  for (const { queryKey } of [spend, quota]) void queryClient.invalidateQueries({ queryKey });
}
