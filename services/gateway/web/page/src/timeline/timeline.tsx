/**
 * The messages of a chat. At the bottom it follows what comes; older pages come in above without
 * moving what is read.
 */
import "./timeline.css";
import "../cards/cards.css";
import { lazy, memo, Suspense, useCallback, useRef, useState } from "react";
import type { Message } from "../api/types.ts";
import type { ChatStore, ChatView } from "../stream/chat-store.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { Skeleton } from "../ui/states.tsx";
import { AssistantMessage } from "./assistant-message.tsx";
import { useGroups } from "./groups.ts";
import { LiveState } from "./live-state.tsx";
import { Notices } from "./notices.tsx";
import type { Row } from "./rows.ts";
import { ColumnWidth, GroupBox, useWidth } from "./scrolling/group-box.tsx";
import { useScrolling } from "./scrolling/scrolling.ts";
import { turnToRepeat } from "../turns/turn-again.ts";
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
  onAgain: (message: Message) => Promise<void>;
}

export function Timeline({ store, view, isMine, onEdit, onRevert, onAgain }: Props) {
  const { chat } = view;
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const isBusy = chat.status === "running" || chat.status === "interrupting";
  const { linked, groups, hasTail } = useGroups(chat, isBusy);

  const again = isMine && chat.status === "error" ? turnToRepeat(chat.messages) : null;

  const scrolling = useScrolling(store, view, scroller, content);
  const [shown, setShown] = useState<{ kind: TurnView; message: Message } | null>(null);
  const onTurn = useCallback((kind: TurnView, message: Message) => setShown({ kind, message }), []);
  const width = useWidth(content);
  const shared = { chatId: store.chatId, isMine, onEdit, onRevert, onTurn };
  const gap = (
    <div className="timeline-gap" key="gap">
      <Button look="quiet" small onClick={() => scrolling.fillGap("older")}>Messages in between</Button>
    </div>
  );

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
          <ColumnWidth value={width}>
            {/* One list of both sides of the gap, so that rows stay the same elements when it closes. */}
            {[
              ...linked.map(({ key, rows }) => <RowGroup key={key} rows={rows} isGrowing={false} {...shared} />),
              ...(chat.gapAfter === null ? [] : [gap]),
              ...groups.map(({ key, rows }, place) => (
                <RowGroup key={key} rows={rows} isGrowing={place === groups.length - 1} {...shared} />
              )),
            ]}
          </ColumnWidth>
          <LiveState view={view} hasTail={hasTail} onAgain={again ? () => onAgain(again) : undefined} />
          {chat.tail?.isTruncated && <p className="card-note">Parts of this preview were left out; the whole message follows.</p>}
        </div>
      </div>
      <div className={`timeline-moves${scrolling.isAtEnd ? " is-at-end" : ""}`}>
        {chat.messages.length > 2 && (
          <div className="timeline-jumps">
            <IconButton icon="arrowUp" label="Your message before this" title="Your message before this (K)" onClick={() => scrolling.jump(-1)} />
            <IconButton icon="arrowDown" label="Your message after this" title="Your message after this (J)" onClick={() => scrolling.jump(1)} />
          </div>
        )}
        {!scrolling.isAtEnd && <Button className="timeline-latest" small icon="arrowDown" onClick={scrolling.toLatest}>Latest</Button>}
      </div>
      <Suspense>
        {shown?.kind === "files" && <FilesDialog chatId={store.chatId} message={shown.message} onClose={() => setShown(null)} />}
        {shown?.kind === "times" && <TimesDialog messages={chat.messages} messageId={shown.message.id} onClose={() => setShown(null)} />}
      </Suspense>
    </div>
  );
}

interface Shared {
  chatId: string;
  isMine: boolean;
  onEdit: (message: Message) => void;
  onRevert: (message: Message) => void;
  onTurn: (kind: TurnView, message: Message) => void;
}

type GroupProps = Shared & { rows: readonly Row[]; isGrowing: boolean };

// A page that comes in above is rendered alone: the groups below have the same rows as before.
const RowGroup = memo(function RowGroup({ rows, isGrowing, ...shared }: GroupProps) {
  return (
    <GroupBox isGrowing={isGrowing}>
      {rows.map((row) => (
        <RowView key={row.item.key} {...row} {...shared} />
      ))}
    </GroupBox>
  );
});

function RowView({ item, chatId, isMine, isRunning, isLastOfTurn, actions, onEdit, onRevert, onTurn }: Row & Shared) {
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
