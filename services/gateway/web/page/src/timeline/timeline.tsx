/**
 * The messages of a chat. At the bottom it follows what comes; older pages come in above without
 * moving what is read.
 */
import "./timeline.css";
import "../cards/cards.css";
import { memo, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { Action, Message } from "../api/types.ts";
import type { ChatStore, ChatView } from "../stream/chat-store.ts";
import { Button } from "../ui/button.tsx";
import { Skeleton } from "../ui/states.tsx";
import { complain } from "../ui/toasts.tsx";
import { AssistantMessage, NO_ACTIONS } from "./assistant-message.tsx";
import { grouped, type Item, itemsOf } from "./items.ts";
import { LiveState } from "./live-state.tsx";
import { UserMessage } from "./user-message.tsx";

const NEAR_BOTTOM = 48;
const NEAR_TOP = 400;

interface Props {
  store: ChatStore;
  view: ChatView;
  userId: string | undefined;
  isMine: boolean;
  onEdit: (message: Message) => void;
  onRevert: (message: Message) => void;
}

export function Timeline({ store, view, isMine, onEdit, onRevert }: Props) {
  const { chat } = view;
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  const follows = useRef(true);
  // Earlier turns stay as they are while the last one grows.
  const turn = chat.messages.findLastIndex((each) => each.role === "user");
  const settled = useMemo(() => grouped(itemsOf(chat.messages.slice(0, Math.max(0, turn)), null)), [chat.messages, turn]);
  const items = useMemo(
    () => grouped(itemsOf(chat.messages.slice(Math.max(0, turn)), chat.tail)),
    [chat.messages, turn, chat.tail],
  );
  const isBusy = chat.status === "running" || chat.status === "interrupting";
  const hasTail = items.at(-1)?.kind === "assistant" && (items.at(-1) as Item & { kind: "assistant" }).isLive;

  useFollowing(scroller, content, follows);
  const loadOlder = useOlder(store, chat.hasOlder, scroller, content);
  useHashTarget(store, view.isLoaded, follows);

  function onScroll(): void {
    const element = scroller.current;
    if (!element) return;
    const left = element.scrollHeight - element.scrollTop - element.clientHeight;
    follows.current = left < NEAR_BOTTOM;
    setAtEnd(left < NEAR_BOTTOM);
    if (element.scrollTop < NEAR_TOP && chat.hasOlder) loadOlder();
  }

  return (
    <div className="timeline">
      <div className="timeline-scroll" ref={scroller} onScroll={onScroll} tabIndex={0} role="log" aria-label="Messages" aria-live="off">
        <div className="timeline-content" ref={content}>
          {chat.hasOlder && (
            <div className="timeline-older">
              <Button look="quiet" small onClick={loadOlder}>Older messages</Button>
            </div>
          )}
          {!view.isLoaded && <Skeleton rows={6} label="Loading messages" />}
          <Settled items={settled} chatId={store.chatId} isMine={isMine} onEdit={onEdit} onRevert={onRevert} />
          {items.map((item, index) => (
            <Row
              key={item.key}
              item={item}
              chatId={store.chatId}
              isMine={isMine}
              isRunning={isBusy && index >= items.length - 2}
              isLastOfTurn={items[index + 1]?.kind !== "assistant"}
              actions={index === items.length - 1 ? (chat.required?.actions ?? NO_ACTIONS) : NO_ACTIONS}
              onEdit={onEdit}
              onRevert={onRevert}
            />
          ))}
          <LiveState view={view} hasTail={hasTail} />
          {chat.tail?.isTruncated && <p className="card-note">Parts of this preview were left out; the whole message follows.</p>}
        </div>
      </div>
      {!isAtEnd && (
        <Button
          className="timeline-latest"
          small
          icon="arrowDown"
          onClick={() => {
            follows.current = true;
            scroller.current?.scrollTo({ top: scroller.current.scrollHeight, behavior: "smooth" });
          }}
        >
          Latest
        </Button>
      )}
    </div>
  );
}

type SettledProps = Pick<RowProps, "chatId" | "isMine" | "onEdit" | "onRevert"> & { items: readonly Item[] };

const Settled = memo(function Settled({ items, ...shared }: SettledProps) {
  return items.map((item, index) => (
    <Row
      key={item.key}
      item={item}
      isRunning={false}
      isLastOfTurn={items[index + 1]?.kind !== "assistant"}
      actions={NO_ACTIONS}
      {...shared}
    />
  ));
});

interface RowProps {
  item: Item;
  chatId: string;
  isMine: boolean;
  isRunning: boolean;
  isLastOfTurn: boolean;
  actions: readonly Action[];
  onEdit: (message: Message) => void;
  onRevert: (message: Message) => void;
}

function Row({ item, chatId, isMine, isRunning, isLastOfTurn, actions, onEdit, onRevert }: RowProps) {
  if (item.kind === "user") {
    return <UserMessage message={item.message} isMine={isMine} onEdit={onEdit} onRevert={onRevert} />;
  }
  return <AssistantMessage item={item} chatId={chatId} isRunning={isRunning} isLastOfTurn={isLastOfTurn} actions={actions} />;
}

type Element = React.RefObject<HTMLDivElement | null>;

/** Stay at the end while the content grows, as long as the reader is there. */
function useFollowing(scroller: Element, content: Element, follows: React.RefObject<boolean>): void {
  useEffect(() => {
    const element = scroller.current;
    if (!element || !content.current) return;
    const observer = new ResizeObserver(() => {
      if (follows.current) element.scrollTop = element.scrollHeight;
    });
    observer.observe(content.current);
    observer.observe(element);
    return () => observer.disconnect();
  }, [scroller, content, follows]);
}

/** Read older pages, and keep what is read where it is. */
function useOlder(store: ChatStore, hasOlder: boolean, scroller: Element, content: Element): () => void {
  const anchor = useRef<{ element: globalThis.Element; top: number } | null>(null);
  const first = store.view.get().chat.messages[0]?.id;

  useLayoutEffect(() => {
    const held = anchor.current;
    const element = scroller.current;
    anchor.current = null;
    if (held && element) element.scrollTop += held.element.getBoundingClientRect().top - held.top;
  }, [first, scroller]);

  useEffect(() => {
    // A chat that does not fill its place reads on until it does.
    const element = scroller.current;
    if (hasOlder && first && element && element.scrollHeight <= element.clientHeight) load();
  });

  function load(): void {
    if (!hasOlder) return;
    void store.loadOlder().catch(complain);
  }

  // Note where the first visible message is, right before the page that changes it is shown.
  useEffect(
    () =>
      store.view.subscribe(() => {
        if (store.view.get().chat.messages[0]?.id === first || !content.current) return;
        const edge = scroller.current?.getBoundingClientRect().top ?? 0;
        const shown = [...content.current.querySelectorAll("article")].find(
          (each) => each.getBoundingClientRect().bottom > edge,
        );
        if (shown) anchor.current = { element: shown, top: shown.getBoundingClientRect().top };
      }),
    [store, first, scroller, content],
  );
  return load;
}

/** Go to the message that the address names. */
function useHashTarget(store: ChatStore, isLoaded: boolean, follows: React.RefObject<boolean>): void {
  useEffect(() => {
    if (!isLoaded) return;
    async function go(): Promise<void> {
      const id = Number(/^#m(\d+)$/.exec(location.hash)?.[1]);
      if (!id) return;
      follows.current = false;
      await store.reach(id);
      requestAnimationFrame(() => {
        const element = document.getElementById(`m${id}`);
        element?.scrollIntoView({ block: "start" });
        element?.classList.add("is-target");
      });
    }
    const onHash = (): void => void go().catch(complain);
    onHash();
    addEventListener("hashchange", onHash);
    return () => removeEventListener("hashchange", onHash);
  }, [store, isLoaded, follows]);
}
