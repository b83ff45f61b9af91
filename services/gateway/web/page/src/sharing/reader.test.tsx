// @vitest-environment happy-dom
/** What a reader of somebody else's chat is shown in place of what only its owner may do. */
import type { ReactNode } from "react";
import { beforeEach, expect, test, vi } from "vitest";
import { AgentRow } from "../agents/tree.tsx";
import { queryClient } from "../api/queries.ts";
import type { Action, Chat } from "../api/types.ts";
import { ActionCard } from "../cards/actions/card.tsx";
import GoalTab from "../goals/tab.tsx";
import Context from "../panel/context/context.tsx";
import Checkpoints from "../panel/files/checkpoints.tsx";
import Files from "../panel/files/files.tsx";
import Processes from "../panel/processes/processes.tsx";
import Terminals from "../panel/processes/terminals.tsx";
import Summary from "../panel/summary.tsx";
import WorkspaceTab from "../panel/workspace/workspace.tsx";
import { ChatRow } from "../sidebar/row.tsx";
import { newCanvas, settled } from "../testing/canvas.tsx";
import { absent, type Answer } from "../testing/server.ts";

const canvas = newCanvas();
const CHAT = {
  id: "c1", root_chat_id: "c1", parent_chat_id: null, owner_id: "u2", owner_name: "Grace", title: "Tides", status: "requires_action", archived: false,
  workspace_id: "w1", child_count: 0, queue_length: 0, place_in_line: 0, has_unread: false, shared: true, diff_status: null, last_error: null,
  updated_at: null, versions: { snapshot: 1 },
} as unknown as Chat;
const PROCESS = { id: "p1", chat_id: null, command: "make", state: "running", stdin_mode: "terminal", started_at: null, exit: null };
const ANSWERS: Record<string, Answer> = {
  "/api/v1/chats/c1/files": { items: [{ path: "a.txt", type: "file", size_bytes: 1 }], next_cursor: null },
  "/api/v1/chats/c1/processes": { items: [PROCESS], next_cursor: null },
  "/api/v1/chats/c1/checkpoints": { items: [{ ref: "r1", repository: ".", commit: "0", label: "first", created_at: null }], next_cursor: null },
};
let asked: string[];

beforeEach(() => {
  asked = [];
  vi.stubGlobal("fetch", async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    asked.push(pathname);
    const answer = ANSWERS[pathname];
    return answer ? Response.json(answer) : absent();
  });
});

/** Show something to the owner of the chat, or to somebody with whom it is shared. */
async function show(as: "owner" | "reader", node: ReactNode): Promise<HTMLElement> {
  queryClient.setQueryData(["me"], { id: as === "owner" ? "u2" : "u1" });
  queryClient.setQueryData(["chat", "c1"], CHAT);
  await canvas.show(node);
  return canvas.element;
}

const buttons = (): string[] => [...canvas.element.querySelectorAll("button")].map((each) => each.textContent ?? "");

test.each([
  ["approval", { command: "make" }, "make"],
  ["loop", { command: "make" }, "make"],
  ["plan", { title: "Release", plan: "Tag it" }, "Tag it"],
  ["question", { questions: [{ question: "Which one?", options: [{ label: "SQLite" }] }] }, "SQLite"],
  ["elicitation", { message: "Which colour?", schema: {} }, "Which colour?"],
  ["login", { message: "Come in" }, "Come in"],
])("an action of the kind %s says for whom it waits, and is not answered by readers", async (kind, args, words) => {
  const action = { id: "a1", chat_id: "c1", kind, tool_name: "execute", args, reason: null, arguments_digest: null } as unknown as Action;
  const shown = await show("reader", <ActionCard action={action} />);
  expect([shown.textContent!.includes(words), shown.querySelector("[role=status]")?.textContent]).toEqual([true, "Waits for Grace"]);
  expect(shown.querySelector("button, input, textarea")).toBeNull();
  await show("owner", <ActionCard action={action} />);
  expect(buttons().length).toBeGreaterThan(0);
});

test("the row of a chat that waits names whom it waits for", async () => {
  const line = async (isMine: boolean) => {
    const shown = await show(isMine ? "owner" : "reader", <ul><ChatRow chat={CHAT} isOpen={false} isMine={isMine} now={0} openId={null} /></ul>);
    return [shown.querySelector(".chat-row-line")?.textContent, shown.querySelector(".visually-hidden")?.textContent, shown.querySelector(".is-waiting-for-me") !== null];
  };
  expect(await line(false)).toEqual(["Waits for Grace", " (waits for Grace)", false]);
  expect(await line(true)).toEqual(["Waits for your answer", " (waits for you)", true]);
});

test("the panel offers readers what reads", async () => {
  const tabs = <><Files chat={CHAT} /><Processes chat={CHAT} /><Checkpoints chat={CHAT} /></>;
  const shown = await show("reader", tabs);
  await settled(() => expect(["a.txt", "make", "first"].filter((each) => !shown.textContent!.includes(each))).toEqual([]));
  expect(buttons()).toEqual(["a.txt1 B", "Output", "What changed since"]);
  await show("owner", tabs);
  await settled(() => expect(buttons()).toEqual(["Upload", "a.txt1 B", "Output", "Stop", "Keep this state", "What changed since", "Restore"]));
});

test("readers are told who sees the terminals, and open none", async () => {
  const shown = await show("reader", <Terminals chat={CHAT} />);
  expect([shown.textContent, shown.querySelector("iframe, button"), asked]).toEqual(["Only the owner of the chat, Grace, sees its terminals.", null, []]);
});

test("what only owners may read is not asked for, and tabs of nothing else say so", async () => {
  queryClient.setQueryData(["models"], { items: [] });
  const shown = await show(
    "reader",
    <>
      <Summary chat={CHAT} />
      {[GoalTab, Context, WorkspaceTab].map((Tab, index) => <Tab key={index} chat={CHAT} />)}
      <AgentRow agent={{ ...CHAT, id: "c2", parent_chat_id: "c1" }} />
    </>,
  );
  const notes = [...shown.querySelectorAll(".panel-note")].map((each) => each.textContent);
  expect(notes).toEqual([
    "There is no summary yet. A few turns make one.",
    "Only the owner of the chat, Grace, sees its goal.",
    "Only the owner of the chat, Grace, sees what its next prompt consists of.",
    "Only the owner of the chat, Grace, sees its workspace; Files, Changes and Processes have what is in it.",
  ]);
  expect(asked).toEqual([]);
});
