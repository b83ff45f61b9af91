/** What several sections of one's own settings read. */
import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";

export const ownSettings = queryOptions({
  queryKey: ["me", "settings"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/me/settings", { signal })),
});

/** One's own models for chats without a chosen model, and for agents. */
export const ownModels = queryOptions({
  queryKey: ["me", "model-overrides"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/me/model-overrides", { signal })),
  staleTime: 300_000,
});
