/** The list of chats: live, filtered by the address, pinned by drag. */
import "./sidebar.css";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Link, useLocation, useRoute } from "wouter";
import { wordsOf } from "../api/problem.ts";
import { actions, chat as chatQuery, chats, me, queryClient, unknownOutcomes } from "../api/queries.ts";
import type { Chat } from "../api/types.ts";
import { changeChat } from "../chat/chat-changes.ts";
import { FIND, STEP } from "../shell/keys.ts";
import { toggleSide } from "../shell/side-state.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { plural } from "../ui/format.ts";
import { Icon } from "../ui/icon.tsx";
import mark from "../ui/mark.svg";
import { type Pane, Splitter } from "../ui/splitter.tsx";
import { Skeleton } from "../ui/states.tsx";
import { complain } from "../ui/toasts.tsx";
import { UsageRing } from "../usage/usage-ring.tsx";
import { FindField } from "./find-field.tsx";
import { searchOf, useFilters } from "./filters.ts";
import { ChatGroup } from "./group.tsx";
import { groupsOf } from "./groups.ts";
import { ChatRow } from "./row.tsx";
import { SharedLine } from "./shared-line.tsx";
import { UserMenu } from "./user-menu.tsx";

const TICK_MS = 60_000;

export function Sidebar({ pane }: { pane: Pane }) {
  const [, navigate] = useLocation();
  const asked = useQuery(actions).data?.items.length ?? 0;
  const waiting = asked + (useQuery(unknownOutcomes).data?.items.length ?? 0);

  return (
    <nav className="side" aria-label="Chats">
      <Splitter label="Width of the list of chats" pane={pane} least={200} most={560} side="right" />
      <div className="side-head">
        <Link className="side-mark" href="/">
          <img src={mark} alt="" />
          Parley
        </Link>
        <IconButton icon="search" label="Find chats, messages, files and commands" title="Find (Ctrl K)" onClick={() => dispatchEvent(new Event(FIND))} />
        <IconButton icon="panel" label="Hide the list of chats" onClick={toggleSide} />
      </div>
      <Button className="side-new" icon="add" onClick={() => navigate("/")}>
        New chat
      </Button>
      {waiting > 0 && (
        <Link className="side-waiting" href="/waiting">
          <Icon name="bell" />
          {plural(waiting, "thing waits", "things wait")} for you
        </Link>
      )}
      <FindField />
      <ChatList />
      <div className="side-foot">
        <UserMenu />
        <UsageRing />
      </div>
    </nav>
  );
}

function ChatList() {
  const [filters] = useFilters();
  const query = useInfiniteQuery({
    ...chats(searchOf(filters)),
    placeholderData: (was) => was,
  });
  const who = useQuery(me).data;
  const [, params] = useRoute("/chats/:chatId");
  const openId = params?.chatId ?? null;
  const openChat = useQuery({ ...chatQuery(openId ?? ""), enabled: false }).data;
  const now = useNow();
  const listed = query.data?.pages.flatMap((page) => page.items) ?? [];
  const groups = groupsOf(listed, now, filters.grouping);
  useStepping(groups.flatMap((group) => group.chats), openId);

  if (query.isPending) {
    return (
      <div className="side-list">
        <Skeleton rows={8} label="Loading chats" />
      </div>
    );
  }
  if (query.isError && !query.data) {
    return (
      <div className="side-list side-empty" role="alert">
        <p>{wordsOf(query.error)}</p>
        <Button small onClick={() => void query.refetch()}>
          Retry
        </Button>
      </div>
    );
  }
  return (
    <div className="side-list">
      <SharedLine />
      {listed.length === 0 && <p className="side-empty">{emptyWords(filters)}</p>}
      {groups.map((group) => (
        <ChatGroup key={group.title} title={group.title} count={group.chats.length} onDrop={(event) => void dropped(event, group.chats, listed)}>
          {group.chats.map((chat) => (
            <ChatRow
              key={chat.id}
              chat={chat}
              isOpen={chat.id === openId}
              isMine={chat.owner_id === who?.id}
              now={now}
              openId={openChat?.root_chat_id === chat.id && openChat.id !== chat.id ? openId : null}
            />
          ))}
        </ChatGroup>
      ))}
      {query.hasNextPage && (
        <MoreButton isBusy={query.isFetchingNextPage} onMore={() => void query.fetchNextPage()} />
      )}
    </div>
  );
}

function emptyWords(filters: { text: string; unread: boolean; archived: boolean; shared: boolean }): string {
  if (filters.text) return "No chat contains these words.";
  if (filters.unread) return "Everything is read.";
  if (filters.archived) return "No chat is archived.";
  if (filters.shared) return "No chat is shared with you.";
  return "No chats yet. New chat begins the first one.";
}

/** Pin a chat where it was dropped, or unpin it if it was dropped among others. */
async function dropped(event: React.DragEvent, group: Chat[], listed: readonly Chat[]): Promise<void> {
  const chatId = event.dataTransfer.getData("application/x-parley-chat");
  const chat = listed.find((each) => each.id === chatId);
  if (!chat) return;
  event.preventDefault();
  const row = (event.target as Element).closest("li");
  const at = row ? [...(row.parentElement?.children ?? [])].indexOf(row) : group.length;
  const isPinned = (group[0]?.pin_order ?? 0) > 0;
  try {
    await changeChat(chat, { pin_order: isPinned ? at + 1 : 0 });
    void queryClient.invalidateQueries({ queryKey: ["chats"] });
  } catch (error) {
    complain(error);
  }
}

function MoreButton({ isBusy, onMore }: { isBusy: boolean; onMore: () => void }) {
  const element = useRef<HTMLButtonElement>(null);
  const more = useRef(onMore);
  more.current = onMore;
  useEffect(() => {
    if (!element.current) return;
    const observer = new IntersectionObserver((entries) => {
      if (entries.some((each) => each.isIntersecting)) more.current();
    });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return (
    <Button ref={element} look="quiet" small disabled={isBusy} onClick={onMore}>
      {isBusy ? "Loading…" : "Older chats"}
    </Button>
  );
}

function useNow(): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/** Go to the chat before or after the open one by key. */
function useStepping(listed: Chat[], openId: string | null): void {
  const [, navigate] = useLocation();
  useEffect(() => {
    function step(event: Event): void {
      const by = (event as CustomEvent<number>).detail;
      const at = listed.findIndex((each) => each.id === openId);
      const next = listed[at === -1 ? 0 : at + by];
      if (next) navigate(`/chats/${next.id}`);
    }
    addEventListener(STEP, step);
    return () => removeEventListener(STEP, step);
  });
}
