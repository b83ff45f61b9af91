/** What one may spend and have. */
import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";

export const spend = queryOptions({
  queryKey: ["me", "spend"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/me/spend", { signal })),
});
export const quota = queryOptions({
  queryKey: ["me", "quota"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/quota", { signal })),
});
