import { memo, useState } from "react";
import { useRoute } from "wouter";
import type { Message, Part } from "../api/types.ts";
import { isPicture, PictureButton } from "../pictures/lightbox.tsx";
import { IconButton } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { Menu, MenuItem } from "../ui/menu.tsx";
import { ForkDialog } from "../sidebar/fork-dialog.tsx";
import { isText, TextButton } from "../uploads/text-preview.tsx";
import { say } from "../ui/toasts.tsx";
import { CopyButton } from "../markdown/code.tsx";
import { Notices } from "./notices.tsx";

/** What can be looked at of a turn. */
export type TurnView = "files" | "times";

interface Props {
  message: Message;
  isMine: boolean;
  onEdit: (message: Message) => void;
  onRevert: (message: Message) => void;
  onTurn: (kind: TurnView, message: Message) => void;
}

/** Senders that are no person. What a goal or a monitor sends may be long: the output of programs. */
const SENDERS: Readonly<Record<string, string>> = {
  program: "a program",
  goal: "the goal",
  monitor: "the monitor",
  schedule: "a schedule",
  agent: "the chat that this agent works for",
};
const LONG = new Set(["goal", "monitor"]);

/** Whether the owner may edit a message and run it again; what a goal or a monitor sent stays as it is. */
export function isEditable(message: Message): boolean {
  return !LONG.has(message.origin ?? "");
}

async function copyLink(message: Message): Promise<void> {
  const link = `${location.origin}${location.pathname}#m${message.id}`;
  try {
    await navigator.clipboard.writeText(link);
    say("The link is copied.");
  } catch {
    // The clipboard may be refused; the link can still be selected.
    say(`The browser does not allow copying. The link is ${link}`);
  }
}

export function textOf(parts: readonly Part[]): string {
  return parts.map((part) => (part.type === "text" ? part.text : "")).filter(Boolean).join("\n\n");
}

export const UserMessage = memo(function UserMessage({ message, isMine, onEdit, onRevert, onTurn }: Props) {
  const [isForking, setForking] = useState(false);
  const [, params] = useRoute("/chats/:chatId");
  const text = textOf(message.content);
  const origin = message.origin ?? "";
  const sender = SENDERS[origin];
  return (
    <article className="user-message" id={`m${message.id}`} aria-label={sender ? `Sent by ${sender}` : "You wrote"}>
      <div className="user-bubble" dir="auto">
        {sender && <p className="card-note">Sent by {sender}</p>}
        {LONG.has(origin) ? <LongText text={text} /> : text}
        <Attachments parts={message.content} />
      </div>
      <Notices parts={message.content} />
      <div className="message-tools">
        <CopyButton text={() => text} label="Copy the message" />
        {isMine && isEditable(message) && <IconButton icon="edit" label="Edit and run again" onClick={() => onEdit(message)} />}
        <Menu
          label="More"
          button={(attributes) => <IconButton icon="more" label="More commands of the message" {...attributes} />}
        >
          <MenuItem icon="file" onChoose={() => onTurn("files", message)}>
            Files that this turn changed…
          </MenuItem>
          <MenuItem icon="clock" onChoose={() => onTurn("times", message)}>
            Time line of this turn…
          </MenuItem>
          {isMine && (
            <>
              <MenuItem icon="undo" onChoose={() => onRevert(message)}>
                Go back to before this…
              </MenuItem>
              <MenuItem icon="add" onChoose={() => setForking(true)}>
                Fork from here…
              </MenuItem>
              <MenuItem icon="copy" onChoose={() => void copyLink(message)}>
                Copy the link
              </MenuItem>
            </>
          )}
        </Menu>
      </div>
      {isForking && params && (
        <ForkDialog chat={{ id: params.chatId }} messageId={message.id} onClose={() => setForking(false)} />
      )}
    </article>
  );
});

function LongText({ text }: { text: string }) {
  const [head = "", ...rest] = text.split("\n\n");
  return (
    <>
      {head}
      {rest.length > 0 && (
        <details>
          <summary>The whole message</summary>
          {rest.join("\n\n")}
        </details>
      )}
    </>
  );
}

export function Attachments({ parts }: { parts: readonly Part[] }) {
  const shown = parts.filter((part) => part.type === "file" || part.type === "file-reference");
  if (shown.length === 0) return null;
  const pictures = shown.flatMap((part) =>
    part.type === "file" && isPicture(part.media_type) ? [{ address: addressOf(part), name: part.name ?? "Picture" }] : [],
  );
  return (
    <ul className="attachments" aria-label="Attachments">
      {shown.map((part, index) => (
        <li key={index}>
          {part.type === "file-reference" ? (
            <span className="file-chip" title={part.content}>
              <Icon name="file" />
              {part.file_name}:{part.start_line}–{part.end_line}
            </span>
          ) : isPicture(part.media_type) ? (
            <PictureButton pictures={pictures} address={addressOf(part)} />
          ) : isText(part.media_type) ? (
            <span className="file-chip">
              <TextButton file={{ id: part.file_id, name: part.name ?? "File", mediaType: part.media_type ?? "" }} />
            </span>
          ) : (
            <a className="file-chip" href={addressOf(part)} download={part.name ?? "file"}>
              <Icon name="file" />
              {part.name ?? "File"}
            </a>
          )}
        </li>
      ))}
    </ul>
  );
}

function addressOf(part: Part & { type: "file" }): string {
  return `/api/v1/files/${part.file_id}`;
}
