/** MCP servers as the page reads them. */
import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";

/** The most that a page of the list has. */
const PAGE = { limit: 100 };

export const servers = queryOptions({
  queryKey: ["mcp", "servers"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/mcp/servers", { params: { query: PAGE }, signal })),
});

/** One's own logins, also at servers that one may no longer use. */
export const logins = queryOptions({
  queryKey: ["mcp", "logins"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/mcp/logins", { signal })),
});

export async function refreshServers(): Promise<void> {
  await queryClient.invalidateQueries({ queryKey: ["mcp"] });
}
