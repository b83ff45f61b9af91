/** How a chat stands, and whether it waits for a person or for chats below it. */
import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { actions, me } from "../api/queries.ts";
import type { Chat, RequiredAction } from "../api/types.ts";
import { ownerOf, useIsReader } from "../sharing/owner.ts";
import { asksNothing, mayWaitForAgents } from "./conclusions.ts";

const STATUS_WORDS: Record<string, string> = {
  running: "is working",
  interrupting: "is stopping",
  requires_action: "waits for you",
  error: "stopped with an error",
};

/** Whether what a chat waits for is the end of its agents, which a person does not answer. */
export function waitsForAgents(required: RequiredAction | null): boolean {
  return required !== null && required.actions.length > 0 && required.actions.every((each) => each.kind === "agents");
}

/** The same as `waitsForAgents` for a chat of a list, where it is not said. */
function useWaitsForAgents(chat: Chat): boolean {
  const mayWait = mayWaitForAgents(chat, useQuery(me).data?.id);
  const { data, isFetching } = useQuery({ ...actions, enabled: mayWait });
  const concluded = useRef({ of: "", waits: false });
  const of = `${chat.id}:${chat.versions.snapshot}`;
  // What was asked before the chat changed says nothing about it now.
  if (mayWait && data && !isFetching) concluded.current = { of, waits: asksNothing(chat, data) };
  return mayWait && concluded.current.of === of && concluded.current.waits;
}

/** How a chat stands, for somebody whose it is or who reads it. */
export interface Standing {
  waitsForAgents: boolean;
  isReader: boolean;
}

export function useStanding(chat: Chat): Standing {
  return { waitsForAgents: useWaitsForAgents(chat), isReader: useIsReader(chat) };
}

export function wordsOfStatus(chat: Chat, { waitsForAgents, isReader }: Standing): string {
  if (waitsForAgents) return "waits for its agents";
  if (isReader && chat.status === "requires_action") return `waits for ${ownerOf(chat)}`;
  return STATUS_WORDS[chat.status ?? ""] ?? "";
}

export function dotOf(chat: Chat, isUnread: boolean, { waitsForAgents, isReader }: Standing): string {
  if (chat.status === "running" || chat.status === "interrupting" || waitsForAgents) return "is-running";
  if (chat.status === "requires_action" && !isReader) return "is-waiting-for-me";
  if (chat.status === "error") return "is-error";
  return isUnread ? "is-unread" : "";
}
