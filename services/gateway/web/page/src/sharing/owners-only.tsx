/** What readers of a chat are told in place of what only its owner sees. */
import type { Chat } from "../api/types.ts";
import { Visible } from "../ui/visible.tsx";
import { ownerOf } from "./owner.ts";

export function OwnersOnly({ chat, what }: { chat: Chat; what: string }) {
  return <p className="panel-note">Only the owner of the chat, <Visible>{ownerOf(chat)}</Visible>, sees {what}.</p>;
}
