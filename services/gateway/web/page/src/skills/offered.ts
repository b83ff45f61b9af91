/** The skills that a message can name, read when somebody begins to type one. */
import { useQuery } from "@tanstack/react-query";
import { type Skill, typesSkill } from "./mentions.ts";
import { ownSkills, skillsOf } from "./queries.ts";

/** The skills of a chat, those of its workspace included, or one's own before there is a chat. */
export function useSkills(chatId: string | null, text: string): { skills: readonly Skill[]; isLoading: boolean } {
  const isTyped = typesSkill(text);
  const own = useQuery({ ...ownSkills, enabled: isTyped && chatId === null });
  const ofChat = useQuery({ ...skillsOf(chatId ?? ""), enabled: isTyped && chatId !== null });
  // Skills that cannot be read are not offered; the rest of the menu is.
  const skills = chatId === null
    ? (own.data?.items ?? []).map((each) => ({ name: each.name, description: each.description, isOfWorkspace: false }))
    : (ofChat.data ?? []).map((each) => ({ name: each.name, description: each.description, isOfWorkspace: each.directory !== null }));
  return { skills, isLoading: chatId === null ? own.isLoading : ofChat.isLoading };
}
