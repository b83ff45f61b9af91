/** A line in the chat of a race, or of one of its candidates, that leads to the comparison. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import type { Chat } from "../api/types.ts";
import { Notice } from "../ui/states.tsx";
import { races } from "./queries.ts";

export function RaceNotice({ chat }: { chat: Chat }) {
  const mayBe = chat.child_count > 0 || chat.parent_chat_id !== null;
  const found = useQuery({ ...races, enabled: mayBe }).data?.items ?? [];
  if (!mayBe || !found.some((each) => each.id === chat.root_chat_id)) return null;
  const isCandidate = chat.id !== chat.root_chat_id;
  return (
    <Notice icon="branch" actions={<Link className="button is-small" href={`/races/${chat.root_chat_id}`}>Compare</Link>}>
      {isCandidate ? "A model works here in a race with others." : "Several models were given this task."}
    </Notice>
  );
}
