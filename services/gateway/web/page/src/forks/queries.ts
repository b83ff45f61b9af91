/** What forks of workspaces hold, as the server says. */
import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";

/** The changes of an agent in a fork; `version` is another one when it may have changed more. */
export function changesOf(chatId: string, version: string) {
  return queryOptions({
    queryKey: ["fork-changes", chatId, version],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: ({ signal }) =>
      answered(
        api.POST("/api/v1/chats/{workspace_id}/merge", {
          params: { path: { workspace_id: chatId } },
          body: { dry_run: true },
          signal,
        }),
      ),
  });
}
