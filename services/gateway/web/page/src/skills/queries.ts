/** Skills as the server has them, under one key for the settings and the composer. */
import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";
import { skillContent } from "./skill-file.ts";

const KEY = "skills";
const READ_AGAIN_MS = 60_000;

/** The skills of the person. */
export const ownSkills = queryOptions({
  queryKey: [KEY],
  staleTime: READ_AGAIN_MS,
  queryFn: ({ signal }) => answered(api.GET("/api/v1/me/skills", { signal })),
});

/** The skills of a chat: those of its workspace, and one's own. */
export function skillsOf(chatId: string) {
  return queryOptions({
    queryKey: [KEY, chatId],
    staleTime: READ_AGAIN_MS,
    queryFn: async ({ signal }) => {
      const params = { path: { chat_id: chatId } };
      return (await answered(api.GET("/api/v1/chats/{chat_id}/context", { params, signal }))).skills;
    },
  });
}

/** Have the skills read again after some were changed, one's own and those of all chats. */
export function refreshSkills(): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: ownSkills.queryKey });
}

/** Read a skill of one's own as a SKILL.md. */
export async function skillText(name: string): Promise<string> {
  return skillContent(await answered(api.GET("/api/v1/me/skills/{name}", { params: { path: { name } } })));
}

/** Store a SKILL.md in place of the one that has its name. */
export async function storeSkill(name: string, content: string): Promise<void> {
  await answered(api.PUT("/api/v1/me/skills/{name}", { params: { path: { name } }, body: { content } }));
}
