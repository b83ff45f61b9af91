/** The repositories of the workspace of a chat, and how they differ from their last commits. */
import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";
import type { Chat } from "../api/types.ts";

/** Ask for the repositories; again with every edit, of which the list of chats tells. */
export function repositories(chat: Chat) {
  return queryOptions({
    queryKey: ["chat", chat.id, "git", chat.diff_status?.refreshed_at ?? ""],
    queryFn: ({ signal }) => answered(api.GET("/api/v1/chats/{chat_id}/git", { params: { path: { chat_id: chat.id } }, signal })),
    placeholderData: (before) => before,
  });
}
