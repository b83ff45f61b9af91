/** One chat of the list, with its menu. */
import { memo, type MouseEvent, useRef, useState, useSyncExternalStore } from "react";
import { Link, useSearch } from "wouter";
import { dotOf, type Standing, useStanding, wordsOfStatus } from "../agents/status.ts";
import type { Chat } from "../api/types.ts";
import { ownerOf } from "../sharing/owner.ts";
import { liveLine } from "../stream/live-line.ts";
import { IconButton } from "../ui/button.tsx";
import type { MenuHandle } from "../ui/menu.tsx";
import { ago, plural } from "../ui/format.ts";
import { Visible } from "../ui/visible.tsx";
import { ChatMenu } from "./chat-menu.tsx";
import { Children } from "./children.tsx";

interface RowProps {
  chat: Chat;
  isOpen: boolean;
  isMine: boolean;
  now: number;
  /** The chat that is open, if it is one below this chat. */
  openId: string | null;
}

export const ChatRow = memo(function ChatRow({ chat, isOpen, isMine, now, openId }: RowProps) {
  const [chosen, setChosen] = useState<boolean | null>(null);
  const isExpanded = chosen ?? openId !== null;
  const search = useSearch();
  const menu = useRef<MenuHandle>(null);
  const isUnread = chat.has_unread && !isOpen;
  const standing = { ...useStanding(chat), isReader: !isMine };
  const words = [isUnread ? "unread" : "", wordsOfStatus(chat, standing)].filter(Boolean);
  return (
    <li className={`chat-row${isUnread ? " is-unread" : ""}${chat.child_count > 0 ? " has-below" : ""}`}>
      <Link
        className="chat-row-link"
        href={`/chats/${chat.id}${search ? `?${search}` : ""}`}
        {...(isOpen ? { "aria-current": "page" as const } : {})}
        draggable={isMine && !chat.archived}
        {...(isMine ? { onContextMenu: (event: MouseEvent<HTMLElement>) => openMenu(event, menu.current) } : {})}
        onDragStart={(event) => event.dataTransfer.setData("application/x-parley-chat", chat.id)}
      >
        <span className={`status-dot ${dotOf(chat, isUnread, standing)}`} aria-hidden="true" />
        <span className="chat-row-title">
          <Visible>{chat.title || "Untitled"}</Visible>
          {words.length > 0 && <span className="visually-hidden"> ({words.join(", ")})</span>}
        </span>
        <time className="chat-row-time" dateTime={chat.updated_at ?? ""}>
          {ago(chat.updated_at, now)}
        </time>
        <SecondLine chat={chat} standing={standing} />
        <Facts chat={chat} isMine={isMine} />
      </Link>
      <div className="chat-row-actions">
        {isMine && (
          <span className="chat-row-menu">
            <ChatMenu ref={menu} chat={chat} isOpen={isOpen} />
          </span>
        )}
        {chat.child_count > 0 && (
          <IconButton
            icon="chevron"
            className={isExpanded ? "is-turned" : ""}
            label={`${isExpanded ? "Hide" : "Show"} ${plural(chat.child_count, "chat")} below`}
            aria-expanded={isExpanded}
            onClick={() => setChosen(!isExpanded)}
          />
        )}
      </div>
      {isExpanded && chat.child_count > 0 && <Children parent={chat} openId={openId} now={now} />}
    </li>
  );
});

/** Open the menu of a row by the right button or its key; with Shift, and for a long touch, the browser has its own. */
function openMenu(event: MouseEvent<HTMLElement>, menu: MenuHandle | null): void {
  const { currentTarget: row, clientX: x, clientY: y } = event;
  const isTouch = (event.nativeEvent as Partial<PointerEvent>).pointerType === "touch";
  const isPointer = event.button === 2;
  if (!menu || isTouch || (isPointer && event.shiftKey)) return;
  event.preventDefault();
  const point = isPointer ? { x, y } : null;
  // While the button is down its release would close what is opened.
  if (event.buttons) addEventListener("pointerup", () => setTimeout(() => menu.openFor(row, point)), { once: true });
  else menu.openFor(row, point);
}

function SecondLine({ chat, standing }: { chat: Chat; standing: Standing }) {
  const live = useSyncExternalStore(liveLine.subscribe, () => {
    const shown = liveLine.get();
    return shown?.chatId === chat.id ? shown.line : null;
  });
  if (standing.waitsForAgents) return <span className="chat-row-line">Waits for its agents</span>;
  if (chat.status === "error" && chat.last_error) {
    return <span className="chat-row-line is-bad">{chat.last_error.message}</span>;
  }
  if (chat.status === "requires_action") {
    if (standing.isReader) return <span className="chat-row-line">Waits for <Visible>{ownerOf(chat)}</Visible></span>;
    return <span className="chat-row-line is-warn">Waits for your answer</span>;
  }
  if (chat.place_in_line > 0) {
    return <span className="chat-row-line">Number {chat.place_in_line} in line</span>;
  }
  const line = live ?? chat.last_turn_summary ?? chat.summary;
  return line ? <span className="chat-row-line">{live ? <Visible>{live}</Visible> : line}</span> : null;
}

function Facts({ chat, isMine }: { chat: Chat; isMine: boolean }) {
  const diff = chat.diff_status;
  const hasDiff = diff && (diff.changed_files > 0 || diff.branch);
  if (!hasDiff && chat.queue_length === 0 && !chat.shared) return null;
  return (
    <span className="chat-row-facts">
      {hasDiff && (
        <span title={`${plural(diff.changed_files, "file")} changed`}>
          {diff.branch && <><Visible>{diff.branch}</Visible> </>}
          <span className="lines-added">+{diff.added_lines}</span>{" "}
          <span className="lines-deleted">−{diff.deleted_lines}</span>
        </span>
      )}
      {chat.queue_length > 0 && <span>{chat.queue_length} queued</span>}
      {chat.shared && <span>{isMine || !chat.owner_name ? "shared" : <>shared by <Visible>{chat.owner_name}</Visible></>}</span>}
    </span>
  );
}

