/** The list of chats, kept current in all tabs by the feed, which one of them reads. */
import { useEffect } from "react";
import type { InfiniteData } from "@tanstack/react-query";
import { me, queryClient } from "../api/queries.ts";
import type { ChatFilter } from "../api/queries.ts";
import type { Chat, ChatStatus, FeedEvent, ListChatsResponse } from "../api/types.ts";
import { chimeFor } from "../shell/chime.ts";
import { readLimitsAgain } from "../usage/queries.ts";
import { connect } from "./connection.ts";
import { share } from "./leader.ts";

type Pages = InfiniteData<ListChatsResponse, string>;

/** Follow the feed while a component is there. */
export function useFeed(userId: string | undefined): void {
  useEffect(() => {
    if (!userId) return;
    const shared = share<FeedEvent>({
      // Another user of the same browser has another feed.
      name: `parley.feed.${userId}`,
      onEvent: (event) => onEvent(event, userId),
      lead: (publish) => {
        const connection = connect<FeedEvent>({
          address: (cursor) =>
            `/api/v1/events${cursor ? `?cursor=${encodeURIComponent(cursor)}` : ""}`,
          cursor: null,
          onEvents: (events) => events.forEach(({ event }) => publish(event)),
          onLink: (link) => {
            // What happened before the feed began is in the list alone, and all tabs missed it.
            if (link === "open") publish({ type: "resync" });
          },
        });
        return connection.close;
      },
    });
    return shared.close;
  }, [userId]);
}

export function onEvent(event: FeedEvent, userId: string): void {
  if (event.type === "updated") onUpdated(event.chat, userId);
  apply(event);
}

/** What events told last: the lists have no agents, and no chats that their filters leave out. */
const toldStatuses = new Map<string, ChatStatus | null>();

function onUpdated(chat: Chat, userId: string): void {
  const listed = knownStatus(chat.id);
  chimeFor(chat, listed, userId);
  const before = toldStatuses.get(chat.id) ?? listed;
  toldStatuses.set(chat.id, chat.status);
  if (before !== chat.status && changesUnknown(chat)) readAgain("unknown-outcomes");
  if (before !== chat.status && chat.owner_id === userId && hasEnded(chat)) readLimitsAgain();
}

/** A turn that began or ended may have taken calls off the list of those that may have run, or added some; one of an agent only adds some. */
function changesUnknown(chat: Chat): boolean {
  return !chat.parent_chat_id || hasEnded(chat);
}

function hasEnded(chat: Chat): boolean {
  return chat.status === "waiting" || chat.status === "error";
}

/** Return the status of a chat as this tab knows it. */
function knownStatus(chatId: string): ChatStatus | null | undefined {
  const lists = queryClient.getQueriesData<Pages>({ queryKey: ["chats"] }).flatMap(([, pages]) => pages?.pages ?? []);
  return lists.flatMap((page) => page.items).find((each) => each.id === chatId)?.status;
}

function apply(event: FeedEvent): void {
  switch (event.type) {
    case "created":
    case "updated":
      upsert(event.chat);
      // A list that is being read may be from before this change, and would take its place.
      if (queryClient.isFetching({ queryKey: ["chats"] })) readAgain("chats");
      break;
    case "deleted":
      toldStatuses.delete(event.chat_id);
      remove(event.chat_id);
      readAgain("chats", "actions", "below", "unknown-outcomes");
      break;
    case "break_glass":
      void queryClient.invalidateQueries({ queryKey: ["break-glass"] });
      break;
    case "resync":
      readAgain("chats", "actions", "below", "unknown-outcomes");
      break;
  }
  if (event.type === "updated") readAgain("actions");
}

function readAgain(...subjects: ("chats" | "actions" | "below" | "unknown-outcomes")[]): void {
  for (const each of subjects) void queryClient.invalidateQueries({ queryKey: [each] });
}

/** Say whether a state of a chat is from before another one: answers and events overtake each other. */
function isBefore(chat: Chat, other: Chat): boolean {
  const versions = chat.versions.snapshot - other.versions.snapshot;
  return versions === 0 ? Date.parse(chat.updated_at ?? "") < Date.parse(other.updated_at ?? "") : versions < 0;
}

/** Put the newest state of a chat into every list that would show it. */
export function upsert(chat: Chat): void {
  queryClient.setQueryData<Chat>(["chat", chat.id], (was) =>
    was && !isBefore(chat, was)
      ? { ...was, ...chat, required_action: was.required_action, children: was.children }
      : was,
  );
  if (chat.parent_chat_id) {
    queryClient.setQueryData<Chat[]>(["below", chat.root_chat_id], (was) =>
      was?.some((each) => each.id === chat.id)
        ? was.map((each) => (each.id === chat.id && !isBefore(chat, each) ? { ...each, ...chat } : each))
        : was && [...was, chat],
    );
    if (chat.status !== "running") void queryClient.invalidateQueries({ queryKey: ["chat-usage", chat.id] });
  }
  // The lists have own chats or those of others, as the server does.
  const isShared = chat.owner_id !== (queryClient.getQueryData(me.queryKey)?.id ?? chat.owner_id);
  for (const [key, pages] of queryClient.getQueriesData<Pages>({ queryKey: ["chats"] })) {
    if (!pages) continue;
    const filter = key[1] as ChatFilter;
    if (pages.pages.some((page) => page.items.some((each) => each.id === chat.id))) {
      queryClient.setQueryData<Pages>(key, replaced(pages, chat));
    } else if (!filter.q && filter.shared === isShared && !chat.parent_chat_id && filter.archived === chat.archived) {
      queryClient.setQueryData<Pages>(key, prepended(pages, chat));
    }
  }
}

function replaced(pages: Pages, chat: Chat): Pages {
  const merge = (was: Chat): Chat => (isBefore(chat, was) ? was : { ...was, ...chat, children: was.children });
  return {
    ...pages,
    pages: pages.pages.map((page) =>
      page.items.some((each) => each.id === chat.id)
        ? { ...page, items: page.items.map((each) => (each.id === chat.id ? merge(each) : each)) }
        : page,
    ),
  };
}

function prepended(pages: Pages, chat: Chat): Pages {
  const [first, ...others] = pages.pages;
  if (!first) return pages;
  return { ...pages, pages: [{ ...first, items: [chat, ...first.items] }, ...others] };
}

export function remove(chatId: string): void {
  for (const [key, pages] of queryClient.getQueriesData<Pages>({ queryKey: ["chats"] })) {
    if (!pages || (key[1] as ChatFilter).archived) continue;
    queryClient.setQueryData<Pages>(key, {
      ...pages,
      pages: pages.pages.map((page) => ({
        ...page,
        items: page.items.filter((each) => each.id !== chatId),
      })),
    });
  }
}
