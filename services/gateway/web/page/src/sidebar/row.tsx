/** One chat of the list, with its menu. */
import { useQueryClient } from "@tanstack/react-query";
import { memo, useState } from "react";
import { Link, useLocation, useSearch } from "wouter";
import { answered, api } from "../api/client.ts";
import type { Chat } from "../api/types.ts";
import { remove, upsert } from "../stream/feed.ts";
import { IconButton } from "../ui/button.tsx";
import { ago, plural } from "../ui/format.ts";
import { Menu, MenuItem, MenuLine } from "../ui/menu.tsx";
import { complain, say } from "../ui/toasts.tsx";
import { Visible } from "../ui/visible.tsx";
import { DeleteDialog, RenameDialog } from "./dialogs.tsx";

const STATUS_WORDS: Record<string, string> = {
  running: "is working",
  interrupting: "is stopping",
  requires_action: "waits for you",
  error: "stopped with an error",
};

interface RowProps {
  chat: Chat;
  isOpen: boolean;
  isMine: boolean;
  now: number;
}

export const ChatRow = memo(function ChatRow({ chat, isOpen, isMine, now }: RowProps) {
  const search = useSearch();
  const isUnread = chat.has_unread && !isOpen;
  const words = [isUnread ? "unread" : "", STATUS_WORDS[chat.status ?? ""] ?? ""].filter(Boolean);
  return (
    <li className={`chat-row${isUnread ? " is-unread" : ""}`}>
      <Link
        className="chat-row-link"
        href={`/chats/${chat.id}${search ? `?${search}` : ""}`}
        {...(isOpen ? { "aria-current": "page" as const } : {})}
        draggable={isMine && !chat.archived}
        onDragStart={(event) => event.dataTransfer.setData("application/x-parley-chat", chat.id)}
      >
        <span className={`status-dot ${dotOf(chat, isUnread)}`} aria-hidden="true" />
        <span className="chat-row-title">
          <Visible>{chat.title || "Untitled"}</Visible>
          {words.length > 0 && <span className="visually-hidden"> ({words.join(", ")})</span>}
        </span>
        <time className="chat-row-time" dateTime={chat.updated_at ?? ""}>
          {ago(chat.updated_at, now)}
        </time>
        <SecondLine chat={chat} />
        <Facts chat={chat} />
      </Link>
      {isMine && <RowMenu chat={chat} isOpen={isOpen} />}
    </li>
  );
});

function dotOf(chat: Chat, isUnread: boolean): string {
  if (chat.status === "running" || chat.status === "interrupting") return "is-running";
  if (chat.status === "requires_action") return "is-waiting-for-me";
  if (chat.status === "error") return "is-error";
  return isUnread ? "is-unread" : "";
}

function SecondLine({ chat }: { chat: Chat }) {
  if (chat.status === "error" && chat.last_error) {
    return <span className="chat-row-line is-bad">{chat.last_error.message}</span>;
  }
  if (chat.status === "requires_action") {
    return <span className="chat-row-line is-warn">Waits for your answer</span>;
  }
  if (chat.place_in_line > 0) {
    return <span className="chat-row-line">Number {chat.place_in_line} in line</span>;
  }
  const line = chat.last_turn_summary ?? chat.summary;
  return line ? <span className="chat-row-line">{line}</span> : null;
}

function Facts({ chat }: { chat: Chat }) {
  const diff = chat.diff_status;
  const hasDiff = diff && (diff.changed_files > 0 || diff.branch);
  if (!hasDiff && chat.queue_length === 0 && !chat.shared) return null;
  return (
    <span className="chat-row-facts">
      {hasDiff && (
        <span title={`${plural(diff.changed_files, "file")} changed`}>
          {diff.branch && <>{diff.branch} </>}
          <span className="lines-added">+{diff.added_lines}</span>{" "}
          <span className="lines-deleted">−{diff.deleted_lines}</span>
        </span>
      )}
      {chat.queue_length > 0 && <span>{chat.queue_length} queued</span>}
      {chat.shared && <span>shared</span>}
    </span>
  );
}

function RowMenu({ chat, isOpen }: { chat: Chat; isOpen: boolean }) {
  const [dialog, setDialog] = useState<"rename" | "delete" | null>(null);
  const [, navigate] = useLocation();
  const queries = useQueryClient();
  const path = { chat_id: chat.id };
  const isActive = chat.status === "running" || chat.status === "interrupting";

  async function run(work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
      void queries.invalidateQueries({ queryKey: ["chats"] });
    } catch (error) {
      complain(error);
    }
  }

  function pin(): Promise<void> {
    return run(async () => {
      const body = { pin_order: chat.pin_order > 0 ? 0 : 1 };
      upsert(await answered(api.PATCH("/api/v1/chats/{chat_id}", { params: { path }, body })));
    });
  }

  function archive(): Promise<void> {
    return run(async () => {
      await answered(api.POST("/api/v1/chats/{chat_id}/archive", { params: { path }, body: {} }));
      remove(chat.id);
      say(`“${chat.title}” is archived.`);
      if (isOpen) navigate("/");
    });
  }

  function unarchive(): Promise<void> {
    return run(() =>
      answered(api.POST("/api/v1/chats/{chat_id}/unarchive", { params: { path }, body: {} })),
    );
  }

  return (
    <div className="chat-row-menu">
      <Menu
        label={`Commands of ${chat.title}`}
        button={(attributes) => (
          <IconButton icon="more" label={`Commands of ${chat.title || "this chat"}`} {...attributes} />
        )}
      >
        <MenuItem icon="edit" onChoose={() => setDialog("rename")}>
          Rename
        </MenuItem>
        {!chat.archived && (
          <MenuItem icon="pin" onChoose={() => void pin()}>
            {chat.pin_order > 0 ? "Unpin" : "Pin"}
          </MenuItem>
        )}
        <MenuItem icon="file" onChoose={() => location.assign(`/api/v1/chats/${chat.id}/export?format=md`)}>
          Export
        </MenuItem>
        <MenuLine />
        {chat.archived ? (
          <MenuItem icon="archive" onChoose={() => void unarchive()}>
            Take back from the archive
          </MenuItem>
        ) : (
          <MenuItem
            icon="archive"
            disabled={isActive}
            hint={isActive ? "Stop its turn first" : undefined}
            onChoose={() => void archive()}
          >
            Archive
          </MenuItem>
        )}
        <MenuItem icon="trash" danger onChoose={() => setDialog("delete")}>
          Delete…
        </MenuItem>
      </Menu>
      {dialog === "rename" && <RenameDialog chat={chat} onClose={() => setDialog(null)} />}
      {dialog === "delete" && (
        <DeleteDialog
          chat={chat}
          onClose={() => setDialog(null)}
          onDeleted={() => {
            remove(chat.id);
            if (isOpen) navigate("/");
          }}
        />
      )}
    </div>
  );
}
