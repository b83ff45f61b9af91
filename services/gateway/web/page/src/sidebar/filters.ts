/** What the list of chats shows: kept in the address, so that it can be shared and reloaded. */
import { useSearchParams } from "wouter";
import type { ChatFilter } from "../api/queries.ts";
import type { Grouping } from "./groups.ts";

export interface SidebarFilters {
  archived: boolean;
  unread: boolean;
  shared: boolean;
  text: string;
  grouping: Grouping;
}

export function useFilters(): [SidebarFilters, (change: Partial<SidebarFilters>) => void] {
  const [query, setQuery] = useSearchParams();
  const filters: SidebarFilters = {
    archived: query.get("show") === "archived",
    shared: query.get("show") === "shared",
    unread: query.has("unread"),
    text: query.get("find") ?? "",
    grouping: query.get("group") === "status" ? "status" : "day",
  };
  function change(next: Partial<SidebarFilters>): void {
    const merged = { ...filters, ...next };
    if (next.archived) merged.shared = false;
    if (next.shared) merged.archived = false;
    setQuery(
      (was) => {
        const changed = new URLSearchParams(was);
        const show = merged.archived ? "archived" : merged.shared ? "shared" : "";
        for (const [key, value] of [
          ["show", show],
          ["unread", merged.unread ? "1" : ""],
          ["find", merged.text],
          ["group", merged.grouping === "status" ? "status" : ""],
        ] as const) {
          if (value) changed.set(key, value);
          else changed.delete(key);
        }
        return changed;
      },
      { replace: true },
    );
  }
  return [filters, change];
}

/** Write filters as the search of the API understands them. */
export function searchOf(filters: SidebarFilters): ChatFilter {
  const terms: string[] = [];
  if (filters.unread) terms.push("has_unread:true");
  const text = filters.text.trim();
  if (text) terms.push(`search:"${text.replaceAll('"', '""')}"`);
  return { archived: filters.archived, shared: filters.shared, q: terms.join(" ") };
}
