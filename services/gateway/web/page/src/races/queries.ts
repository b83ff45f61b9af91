/** Races as the server has them. */
import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";
import { isOver, type Race } from "./race.ts";

const READ_AGAIN_MS = 2_000;

export const races = queryOptions({
  queryKey: ["races"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/races", { signal })),
});

export function race(raceId: string) {
  return queryOptions({
    queryKey: ["race", raceId],
    queryFn: ({ signal }) => answered(api.GET("/api/v1/races/{race_id}", { params: { path: { race_id: raceId } }, signal })),
    staleTime: 0,
    refetchInterval: (query) => (query.state.data && !isOver(query.state.data) ? READ_AGAIN_MS : false),
  });
}

/** Keep the race that a command answers; after a failure part of it may be done, so the race is read again. */
export async function known(raceId: string, answer: Promise<Race>): Promise<void> {
  const { queryKey } = race(raceId);
  try {
    queryClient.setQueryData(queryKey, await answer);
  } catch (error) {
    void queryClient.invalidateQueries({ queryKey });
    throw error;
  }
}
