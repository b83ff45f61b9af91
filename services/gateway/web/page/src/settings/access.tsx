/** Who had access to one's own chats as an administrator, when and why. */
import { useQuery } from "@tanstack/react-query";
import { me, people } from "../api/queries.ts";
import { accesses } from "../break-glass/queries.ts";
import { AccessTable } from "../break-glass/table.tsx";
import { Loaded } from "../forms/loaded.tsx";

export default function AccessSection() {
  const who = useQuery(me).data;
  const query = useQuery(accesses(true));
  const own = (query.data?.items ?? []).filter((each) => each.user_id === who?.id);
  const known = useQuery(people(own.map((each) => each.administrator_id))).data;
  const nameOf = (id: string): string => known?.items.find((each) => each.id === id)?.display_name || "An administrator";
  return (
    <>
      <p>Administrators do not read your chats. If one must, they say why, for how long, and you see it here.</p>
      <Loaded query={query} what="list of accesses">
        {() => <AccessTable rows={own} nameOf={nameOf} isSubject />}
      </Loaded>
    </>
  );
}
