/**
 * The messages of a chat. At the bottom it follows what comes; older pages come in above without
 * moving what is read.
 */
import "./timeline.css";
import "../cards/cards.css";
import { lazy, memo, Suspense, useCallback, useMemo, useRef, useState } from "react";
import type { Action, Message } from "../api/types.ts";
import { afterGap } from "../stream/chat-state.ts";
import type { ChatStore, ChatView } from "../stream/chat-store.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { Skeleton } from "../ui/states.tsx";
import { AssistantMessage, NO_ACTIONS } from "./assistant-message.tsx";
import { endsTurn, grouped, type Item, itemsOf } from "./items.ts";
import { LiveState } from "./live-state.tsx";
import { Notices } from "./notices.tsx";
import { useScrolling } from "./scrolling.ts";
import { type TurnView, UserMessage } from "./user-message.tsx";

const TimesDialog = lazy(() => import("../turns/times-dialog.tsx"));
const FilesDialog = lazy(() => import("../turns/files-dialog.tsx"));

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
  // Earlier turns stay as they are while the last one grows.
  const start = afterGap(chat);
  const turn = Math.max(start, chat.messages.findLastIndex((each) => each.role === "user"));
  const before = useSame(chat.messages.slice(0, start));
  const after = useSame(chat.messages.slice(start, turn));
  const linked = useMemo(() => grouped(itemsOf(before, null)), [before]);
  const settled = useMemo(() => grouped(itemsOf(after, null)), [after]);
  const items = useMemo(
    () => grouped(itemsOf(chat.messages.slice(turn), chat.tail)),
    [chat.messages, turn, chat.tail],
  );
  const isBusy = chat.status === "running" || chat.status === "interrupting";
  const hasTail = items.at(-1)?.kind === "assistant" && (items.at(-1) as Item & { kind: "assistant" }).isLive;

  const scrolling = useScrolling(store, view, scroller, content);
  const [shown, setShown] = useState<{ kind: TurnView; message: Message } | null>(null);
  const onTurn = useCallback((kind: TurnView, message: Message) => setShown({ kind, message }), []);
  const rows = { chatId: store.chatId, isMine, onEdit, onRevert, onTurn };

  return (
    <div className="timeline">
      <div className="timeline-scroll" ref={scroller} onScroll={scrolling.onScroll} tabIndex={0} role="log" aria-label="Messages" aria-live="off">
        <div className="timeline-content" ref={content}>
          {chat.hasOlder && (
            <div className="timeline-older">
              <Button look="quiet" small onClick={scrolling.loadOlder}>Older messages</Button>
            </div>
          )}
          {!view.isLoaded && <Skeleton rows={6} label="Loading messages" />}
          <Settled linked={linked} items={settled} hasGap={chat.gapAfter !== null} onFillGap={scrolling.fillGap} {...rows} />
          {items.map((item, index) => (
            <Row
              key={item.key}
              item={item}
              isRunning={isBusy && index >= items.length - 2}
              isLastOfTurn={endsTurn(items, index)}
              actions={index === items.length - 1 ? (chat.required?.actions ?? NO_ACTIONS) : NO_ACTIONS}
              {...rows}
            />
          ))}
          <LiveState view={view} hasTail={hasTail} />
          {chat.tail?.isTruncated && <p className="card-note">Parts of this preview were left out; the whole message follows.</p>}
        </div>
      </div>
      {chat.messages.length > 2 && (
        <div className="timeline-jumps">
          <IconButton icon="arrowUp" label="Your message before this" onClick={() => scrolling.jump(-1)} />
          <IconButton icon="arrowDown" label="Your message after this" onClick={() => scrolling.jump(1)} />
        </div>
      )}
      {!scrolling.isAtEnd && (
        <Button className="timeline-latest" small icon="arrowDown" onClick={scrolling.toLatest}>Latest</Button>
      )}
      <Suspense>
        {shown?.kind === "files" && <FilesDialog chatId={store.chatId} message={shown.message} onClose={() => setShown(null)} />}
        {shown?.kind === "times" && <TimesDialog messages={chat.messages} messageId={shown.message.id} onClose={() => setShown(null)} />}
      </Suspense>
    </div>
  );
}

/** Return the list of the last time as long as its entries are the same. */
function useSame<T>(list: readonly T[]): readonly T[] {
  const last = useRef(list);
  const isSame = last.current.length === list.length && list.every((each, index) => each === last.current[index]);
  if (!isSame) last.current = list;
  return last.current;
}

type Shared = Pick<RowProps, "chatId" | "isMine" | "onEdit" | "onRevert" | "onTurn">;
interface SettledProps extends Shared {
  /** The rows before the gap. */
  linked: readonly Item[];
  items: readonly Item[];
  hasGap: boolean;
  onFillGap: (side: "older" | "newer") => void;
}

// One list of both sides of the gap, so that rows stay the same elements when it closes. They have a
// box of their own, whose layout stays as it is while the last turn grows.
const Settled = memo(function Settled({ linked, items, hasGap, onFillGap, ...shared }: SettledProps) {
  const row = (item: Item, isLastOfTurn: boolean) => (
    <Row key={item.key} item={item} isRunning={false} isLastOfTurn={isLastOfTurn} actions={NO_ACTIONS} {...shared} />
  );
  const gap = (
    <div className="timeline-gap" key="gap">
      <Button look="quiet" small onClick={() => onFillGap("older")}>Messages in between</Button>
    </div>
  );
  return (
    <div className="timeline-settled">
      {[
        ...linked.map((item, index) => row(item, endsTurn(linked, index))),
        ...(hasGap ? [gap] : []),
        ...items.map((item, index) => row(item, endsTurn(items, index))),
      ]}
    </div>
  );
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
  onTurn: (kind: TurnView, message: Message) => void;
}

function Row({ item, chatId, isMine, isRunning, isLastOfTurn, actions, onEdit, onRevert, onTurn }: RowProps) {
  if (item.kind === "notice") {
    return (
      <article className="assistant-message" id={`m${item.message.id}`} aria-label="Notice">
        <Notices parts={item.message.content} />
      </article>
    );
  }
  if (item.kind === "user") {
    return <UserMessage message={item.message} isMine={isMine} onEdit={onEdit} onRevert={onRevert} onTurn={onTurn} />;
  }
  return <AssistantMessage item={item} chatId={chatId} isRunning={isRunning} isLastOfTurn={isLastOfTurn} actions={actions} />;
}
