/** Hooks as the server has them. */
import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";
import type { components } from "../api/schema.d.ts";

export type Hook = components["schemas"]["Hook"];
export type Delivery = components["schemas"]["HookDelivery"];

const DELIVERIES_MAX = 200;

export const hooks = queryOptions({
  queryKey: ["admin", "hooks"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/hooks", { signal })),
});

/** A hook with the version that a change of it names. */
export function hookVersion(hookId: string) {
  return queryOptions({
    queryKey: ["admin", "hook-version", hookId],
    // A form is opened with what is stored by then.
    staleTime: 0,
    gcTime: 0,
    refetchOnWindowFocus: false,
    queryFn: async ({ signal }) => {
      const call = api.GET("/api/v1/hooks/{hook_id}", { params: { path: { hook_id: hookId } }, signal });
      const hook = await answered(call);
      return { hook, etag: (await call).response.headers.get("ETag") ?? "" };
    },
  });
}

export function deliveries(hookId: string) {
  return queryOptions({
    queryKey: ["admin", "hook-deliveries", hookId],
    staleTime: 0,
    queryFn: ({ signal }) =>
      answered(
        api.GET("/api/v1/hooks/{hook_id}/deliveries", {
          params: { path: { hook_id: hookId }, query: { limit: DELIVERIES_MAX } },
          signal,
        }),
      ),
  });
}

export async function refreshHooks(): Promise<void> {
  await queryClient.invalidateQueries({ queryKey: hooks.queryKey });
}
