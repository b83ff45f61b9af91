/** How many chats of others one may read, with the way to them: the list has own chats only. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { chats } from "../api/queries.ts";
import { Button } from "../ui/button.tsx";
import { plural } from "../ui/format.ts";
import { searchOf, useFilters } from "./filters.ts";

export function SharedLine() {
  const [filters, setFilters] = useFilters();
  const isNarrowed = filters.shared || filters.archived || filters.unread || filters.text !== "";
  const shared = useInfiniteQuery({ ...chats(searchOf({ ...filters, shared: true })), enabled: !isNarrowed });
  const known = shared.data?.pages.flatMap((page) => page.items).length ?? 0;
  if (isNarrowed || known === 0) return null;
  return (
    <Button look="quiet" small icon="users" onClick={() => setFilters({ shared: true })}>
      {shared.hasNextPage ? `More than ${known} chats` : plural(known, "chat")} shared with you
    </Button>
  );
}
