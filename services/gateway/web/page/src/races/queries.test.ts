// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { queryClient } from "../api/queries.ts";
import { known, race } from "./queries.ts";
import type { Race } from "./race.ts";

const RACE = { id: "r1", candidates: [] } as unknown as Race;

test("a race is as the answer to a check says, and read again if there is none", async () => {
  const { queryKey } = race("r1");
  await known("r1", Promise.resolve(RACE));
  expect(queryClient.getQueryState(queryKey)).toMatchObject({ data: RACE, isInvalidated: false });
  await expect(known("r1", Promise.reject(new Error("away")))).rejects.toThrow("away");
  expect(queryClient.getQueryState(queryKey)?.isInvalidated).toBe(true);
  queryClient.clear();
});
