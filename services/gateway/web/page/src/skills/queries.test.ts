// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { queryClient } from "../api/queries.ts";
import { ownSkills, refreshSkills, skillsOf } from "./queries.ts";

test("skills that were changed are read again by the settings and by the composers of all chats", async () => {
  queryClient.setQueryData(ownSkills.queryKey, { items: [] });
  queryClient.setQueryData(skillsOf("c1").queryKey, []);
  await refreshSkills();
  const states = [ownSkills.queryKey, skillsOf("c1").queryKey].map((key) => queryClient.getQueryState(key)?.isInvalidated);
  expect(states).toEqual([true, true]);
  queryClient.clear();
});
