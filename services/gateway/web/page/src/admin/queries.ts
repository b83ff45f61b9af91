/** What the sections of administration read. */
import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";

const PAGE = { limit: 200 };

export const users = queryOptions({
  queryKey: ["admin", "users"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/users", { params: { query: PAGE }, signal })),
});
export const groups = queryOptions({
  queryKey: ["admin", "groups"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/groups", { params: { query: PAGE }, signal })),
});
export const providers = queryOptions({
  queryKey: ["admin", "providers"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/providers", { params: { query: PAGE }, signal })),
});
/** Read the providers again, and the models that depend on them. */
export async function refreshProviders(): Promise<void> {
  await Promise.all([
    queryClient.invalidateQueries({ queryKey: providers.queryKey }),
    queryClient.invalidateQueries({ queryKey: ["models"] }),
  ]);
}
export const installation = queryOptions({
  queryKey: ["admin", "settings"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/settings", { signal })),
});
export const limits = queryOptions({
  queryKey: ["admin", "spend-limits"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/spend-limits", { params: { query: PAGE }, signal })),
});
export const overrides = queryOptions({
  queryKey: ["admin", "model-overrides"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/model-overrides", { signal })),
});
