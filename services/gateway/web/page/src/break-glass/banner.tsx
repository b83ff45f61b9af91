/** Tells a user that an administrator can read their chats now. */
import { useQuery } from "@tanstack/react-query";
import { people } from "../api/queries.ts";
import { Notice } from "../ui/states.tsx";
import { Visible } from "../ui/visible.tsx";
import { accesses } from "./queries.ts";

export function BreakGlassBanner({ userId }: { userId: string }) {
  const { data } = useQuery(accesses(false));
  const open = (data?.items ?? []).filter((each) => each.is_open && each.user_id === userId);
  const known = useQuery(people(open.map((each) => each.administrator_id))).data;
  return open.map((each) => (
    <Notice key={each.id} kind="warn" icon="shield" title="An administrator can read your chats">
      {known?.items.find((person) => person.id === each.administrator_id)?.display_name ?? "An administrator"}
      {each.expires_at && ` until ${new Date(each.expires_at).toLocaleTimeString([], { timeStyle: "short" })}`}. Reason: <Visible>{each.reason}</Visible>
    </Notice>
  ));
}
