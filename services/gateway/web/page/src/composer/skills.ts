/** The skills that a message can name, read when somebody begins to type one. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";
import { type Skill, typesSkill } from "./skill-mentions.ts";

const READ_AGAIN_MS = 60_000;

const personal = queryOptions({
  queryKey: ["skills", "personal"],
  staleTime: READ_AGAIN_MS,
  queryFn: async ({ signal }): Promise<Skill[]> => {
    const { items } = await answered(api.GET("/api/v1/me/skills", { signal }));
    return items.map((each) => ({ name: each.name, description: each.description, isOfWorkspace: false }));
  },
});

function ofChat(chatId: string) {
  return queryOptions({
    queryKey: ["skills", chatId],
    staleTime: READ_AGAIN_MS,
    queryFn: async ({ signal }): Promise<Skill[]> => {
      const params = { path: { chat_id: chatId } };
      const { skills } = await answered(api.GET("/api/v1/chats/{chat_id}/context", { params, signal }));
      return skills.map((each) => ({ name: each.name, description: each.description, isOfWorkspace: each.directory !== null }));
    },
  });
}

/** The skills of a chat, those of its workspace included, or one's own before there is a chat. */
export function useSkills(chatId: string | null, text: string): { skills: readonly Skill[]; isLoading: boolean } {
  const query = useQuery({ ...(chatId ? ofChat(chatId) : personal), enabled: typesSkill(text) });
  // Skills that cannot be read are not offered; the rest of the menu is.
  return { skills: query.data ?? [], isLoading: query.isLoading };
}
