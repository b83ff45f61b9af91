/** What can be chosen as the workspace of a chat, and what stays behind then. */
import type { components } from "../../api/schema.d.ts";
import type { Chat } from "../../api/types.ts";

type Workspace = components["schemas"]["Workspace"];

/** The directory of the chat's own, which needs no workspace. */
export const OWN_FILES = "";
const GONE = new Set(["deleted", "failed"]);
const AT_REST = new Set(["waiting", "error"]);

/** Return why the workspace cannot be switched now; empty if it can. */
export function switchProblem(chat: Pick<Chat, "status" | "parent_chat_id">): string {
  if (chat.parent_chat_id) return "An agent works where the chat works that started it.";
  return AT_REST.has(chat.status ?? "") ? "" : "It can be switched when the turn has ended.";
}

/** Return the choices: the chat's own files, and workspaces that can be used or are in use here. */
export function workspaceOptions(
  workspaces: readonly Pick<Workspace, "id" | "name" | "state" | "template_name">[],
  presentId: string,
): [string, string][] {
  const usable = workspaces.filter((each) => each.id === presentId || !GONE.has(each.state ?? ""));
  const listed = usable.map((each): [string, string] => [
    each.id,
    [each.name, each.template_name, each.state === "stopped" ? "stopped" : ""].filter(Boolean).join(" · "),
  ]);
  const isKnown = presentId === OWN_FILES || usable.some((each) => each.id === presentId);
  return [[OWN_FILES, "Own files of this chat"], ...listed, ...(isKnown ? [] : [[presentId, "The present one"] as [string, string]])];
}

/** Return what does not come along. */
export function leftBehind(name: string | undefined): string[] {
  const from = name ?? "the present directory";
  return [
    `Files are not copied: those in ${from} stay there, and the agent does not see them any more.`,
    "Its processes and terminals go on there until it stops; the chat does not show them.",
    "Going back with files restores nothing of turns that worked there.",
    "Nothing is deleted: switch back to go on there.",
  ];
}
