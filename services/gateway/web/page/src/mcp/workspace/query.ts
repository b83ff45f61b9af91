/** Reads the MCP servers that the workspace of a chat defines. */
import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "../../api/client.ts";

const keyOf = (chatId: string) => ["chat", chatId, "servers"] as const;
const read = (chatId: string, signal: AbortSignal) =>
  answered(api.GET("/api/v1/chats/{chat_id}/servers", { params: { path: { chat_id: chatId } }, signal }));

/** What it defines now. */
export function serversOf(chatId: string) {
  return queryOptions({ queryKey: keyOf(chatId), queryFn: ({ signal }) => read(chatId, signal), staleTime: 0 });
}

/** What it defined when the chat had come to rest at a message; nothing is read while that is not known. */
export function serversAt(chatId: string, messageId: number | undefined) {
  return queryOptions({
    queryKey: [...keyOf(chatId), messageId],
    queryFn: ({ signal }) => read(chatId, signal),
    enabled: messageId !== undefined,
    staleTime: Infinity,
    // A workspace whose node is away has nothing to tell; the panel says more.
    retry: false,
  });
}
