/** The commands of a chat, in the list and above the chat itself. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type Ref, useState } from "react";
import { useLocation } from "wouter";
import { answered, api } from "../api/client.ts";
import { models } from "../api/queries.ts";
import type { Chat } from "../api/types.ts";
import { changeChat } from "../chat/chat-changes.ts";
import { hasDemoAlone } from "../models/demo-hint.tsx";
import { SharingDialog } from "../sharing/dialog.tsx";
import { remove, upsert } from "../stream/feed.ts";
import { IconButton } from "../ui/button.tsx";
import { Menu, type MenuHandle, MenuItem, MenuLine } from "../ui/menu.tsx";
import { complain, say } from "../ui/toasts.tsx";
import { DeleteDialog, RenameDialog } from "./dialogs.tsx";
import { ForkDialog } from "./fork-dialog.tsx";

interface Props {
  chat: Chat;
  isOpen: boolean;
  ref?: Ref<MenuHandle>;
}

export function ChatMenu({ chat, isOpen, ref }: Props) {
  const [dialog, setDialog] = useState<"rename" | "delete" | "fork" | "share" | null>(null);
  const [, navigate] = useLocation();
  const queries = useQueryClient();
  // The demo writes no titles.
  const known = useQuery(models).data;
  const isDemo = known !== undefined && hasDemoAlone(known.items);
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
    return run(() => changeChat(chat, { pin_order: chat.pin_order > 0 ? 0 : 1 }));
  }

  function retitle(): Promise<void> {
    return run(async () => {
      const { title } = await answered(api.POST("/api/v1/chats/{chat_id}/title/regenerate", { params: { path }, body: {} }));
      upsert({ ...chat, title });
      say(`The title is now “${title}”.`);
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
    <>
      <Menu
        ref={ref}
        label={`Commands of ${chat.title}`}
        button={(attributes) => (
          <IconButton icon="more" label={`Commands of ${chat.title || "this chat"}`} {...attributes} />
        )}
      >
        {!isOpen && (
          <MenuItem icon="chat" onChoose={() => window.open(`/chats/${chat.id}`, "_blank", "noopener")}>
            Open in a new tab
          </MenuItem>
        )}
        <MenuItem icon="edit" onChoose={() => setDialog("rename")}>
          Rename
        </MenuItem>
        {!isDemo && (
          <MenuItem icon="spark" onChoose={() => void retitle()}>
            Make a new title
          </MenuItem>
        )}
        <MenuItem icon="copy" onChoose={() => setDialog("fork")}>
          Fork…
        </MenuItem>
        {!chat.parent_chat_id && (
          <MenuItem icon="users" onChoose={() => setDialog("share")}>
            Share…
          </MenuItem>
        )}
        {!chat.archived && !chat.parent_chat_id && (
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
      {dialog === "fork" && <ForkDialog chat={chat} messageId={null} onClose={() => setDialog(null)} />}
      {dialog === "share" && <SharingDialog chat={chat} onClose={() => setDialog(null)} />}
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
    </>
  );
}
