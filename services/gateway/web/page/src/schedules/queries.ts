/** Schedules as the server has them. */
import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";

export const schedules = queryOptions({
  queryKey: ["me", "schedules"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/schedules", { signal, params: { query: { limit: 200 } } })),
});

/** A schedule with the version that a change of it names. */
export function scheduleVersion(scheduleId: string) {
  return queryOptions({
    queryKey: ["me", "schedule-version", scheduleId],
    // A form is opened with what is stored by then.
    staleTime: 0,
    gcTime: 0,
    refetchOnWindowFocus: false,
    queryFn: async ({ signal }) => {
      const call = api.GET("/api/v1/schedules/{schedule_id}", { params: { path: { schedule_id: scheduleId } }, signal });
      const schedule = await answered(call);
      return { schedule, etag: (await call).response.headers.get("ETag") ?? "" };
    },
  });
}

export function refresh(): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: schedules.queryKey });
}
