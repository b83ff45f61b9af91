/** Accesses of administrators to chats; members see those to their own. */
import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";

export const BREAK_GLASS = "break-glass";

export function accesses(includesEnded: boolean) {
  return queryOptions({
    queryKey: [BREAK_GLASS, includesEnded],
    queryFn: ({ signal }) =>
      answered(api.GET("/api/v1/break-glass", { params: { query: { limit: 100, ...(includesEnded ? { include_ended: true } : {}) } }, signal })),
  });
}
