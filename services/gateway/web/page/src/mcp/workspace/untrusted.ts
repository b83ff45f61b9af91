/** Which servers of a workspace wait for trust, from the state of their chat alone. */
import { createStore } from "../../ui/stores/store.ts";
import { readStored, writeStored } from "../../ui/stores/stored.ts";
import type { ChatStatus, Message } from "../../api/types.ts";
import type { WorkspaceServer } from "./definition.ts";

const KEY = "parley.servers.later";
/** Of more definitions than these the ones are forgotten that were put off longest ago. */
export const PUT_OFF_MAX = 100;

/**
 * Return the newest message of a chat at rest in which a tool was called, 0 if none was: what the workspace defines is
 * read once for each. A turn that is over before the page has opened the chat has such a message as well, and answers
 * without tools change no files. Nothing while a turn works, or while the chat is not known.
 */
export function settledAt(status: ChatStatus | null, messages: readonly Pick<Message, "id" | "content">[]): number | undefined {
  if (status === null || status === "running" || status === "interrupting") return undefined;
  return messages.findLast(({ content }) => content.some((part) => part.type === "tool-call"))?.id ?? 0;
}

/** What stands for a definition of a server in the chat where it was put off. */
export function definitionKey(chatId: string, { name, digest }: Pick<WorkspaceServer, "name" | "digest">): string {
  return [chatId, name, digest].join(" ");
}

/** Return the servers that a person has neither trusted nor put off, as they are defined now. */
export function waitingForTrust(
  chatId: string,
  servers: readonly WorkspaceServer[],
  putOff: readonly string[],
): readonly WorkspaceServer[] {
  return servers.filter((each) => each.state === "untrusted" && !putOff.includes(definitionKey(chatId, each)));
}

/** Read what is stored; what is no list of definitions is nothing. */
export function parsedPutOff(text: string | null): readonly string[] {
  try {
    const found = JSON.parse(text ?? "[]") as unknown;
    return Array.isArray(found) ? found.filter((each) => typeof each === "string") : [];
  } catch {
    return [];
  }
}

/** The definitions that were put off in this browser. */
export const putOffServers = createStore<readonly string[]>(parsedPutOff(readStored(KEY)));

export function putOff(chatId: string, servers: readonly WorkspaceServer[]): void {
  // Another tab of the browser may have put others off.
  const added = servers.map((each) => definitionKey(chatId, each));
  const next = [...new Set([...parsedPutOff(readStored(KEY)), ...putOffServers.get(), ...added])].slice(-PUT_OFF_MAX);
  putOffServers.set(next);
  writeStored(KEY, JSON.stringify(next));
}
