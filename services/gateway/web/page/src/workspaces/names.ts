/** Names of workspaces as people know them: those that chats and agents made are named by ids. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { chats } from "../api/queries.ts";

const OF_CHAT = /^chat-([0-9a-f]{8})([0-9a-f-]{28})$/;
const OF_AGENT = /^agent-([0-9a-f]{8})[0-9a-f-]{28}$/;

interface Named {
  name: string;
}

export type Titles = ReadonlyMap<string, string>;

/** Return the titles of the newest chats, by id; the list of chats has them. */
export function useChatTitles(): Titles {
  const { data } = useInfiniteQuery(chats({ archived: false, shared: false, q: "" }));
  return new Map((data?.pages ?? []).flatMap((page) => page.items.map((each) => [each.id, each.title] as const)));
}

/** Whether an agent works in it, in a copy of the files of a chat. */
export function isOfAgent({ name }: Named): boolean {
  return OF_AGENT.test(name);
}

export function nameOf({ name }: Named, titles: Titles): string {
  const [, first, others] = OF_CHAT.exec(name) ?? [];
  if (first) {
    const title = titles.get(`${first}${others}`);
    return title ? `Files of “${title}”` : `Files of a chat (${first})`;
  }
  const agent = OF_AGENT.exec(name)?.[1];
  return agent ? `Copy of an agent (${agent})` : name;
}

/** Return the workspaces that people choose between, with their names. */
export function chosenBetween<T extends Named>(workspaces: readonly T[], titles: Titles): T[] {
  return workspaces.filter((each) => !isOfAgent(each)).map((each) => ({ ...each, name: nameOf(each, titles) }));
}
