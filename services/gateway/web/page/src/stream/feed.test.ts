// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test } from "vitest";
import { queryClient } from "../api/queries.ts";
import type { Chat, ChatStatus } from "../api/types.ts";
import { onEvent } from "./feed.ts";

const CHAT = { id: "c1", root_chat_id: "c1", parent_chat_id: null, owner_id: "ann", title: "Tides", archived: false, etag: "1-a" };

let step = 0;

/** Tell the next state of a chat. */
function tell(chat: Partial<Chat>, status: ChatStatus): void {
  step += 1;
  onEvent({ type: "updated", chat: { ...CHAT, ...chat, status, versions: { snapshot: step } } as unknown as Chat } as Parameters<typeof onEvent>[0], "ann");
}

/** Return whether the calls that may have run are to be read again since this was asked last. */
function isReadAgain(): boolean {
  const isRead = queryClient.getQueryState(["unknown-outcomes"])!.isInvalidated;
  queryClient.setQueryData(["unknown-outcomes"], { items: [] });
  return isRead;
}

beforeEach(() => {
  queryClient.setQueryData(["unknown-outcomes"], { items: [] });
});

afterEach(() => queryClient.clear());

test("steps of an agent do not read the calls that may have run again, but the end of its turn does", () => {
  const agent = { id: "a1", parent_chat_id: "c1" };
  for (let each = 0; each < 5; each += 1) tell(agent, "running");
  expect(isReadAgain()).toBe(false);
  tell(agent, "waiting");
  expect(isReadAgain()).toBe(true);
  tell(agent, "waiting");
  expect(isReadAgain()).toBe(false);
  tell(agent, "running");
  expect(isReadAgain()).toBe(false);
  tell(agent, "error");
  expect(isReadAgain()).toBe(true);
});

test("an agent of which only the end of its turn is told counts too", () => {
  tell({ id: "a2", parent_chat_id: "c1" }, "waiting");
  expect(isReadAgain()).toBe(true);
});

test("steps of a chat that no list has do not read them again, but the begin and the end of its turn do", () => {
  const statuses: ChatStatus[] = ["running", "running", "running", "waiting", "waiting", "running"];
  const read = statuses.map((status) => {
    tell({ id: "c2", root_chat_id: "c2" }, status);
    return isReadAgain();
  });
  expect(read).toEqual([true, false, false, true, false, true]);
});

test("the end of a turn of one's own reads the limits again, and steps and turns of others do not", () => {
  const read = (["running", "waiting", "running", "error"] as const).map((status) => {
    queryClient.setQueryData(["me", "spend"], {});
    tell({ id: "c6", root_chat_id: "c6" }, status);
    return queryClient.getQueryState(["me", "spend"])!.isInvalidated;
  });
  queryClient.setQueryData(["me", "spend"], {});
  tell({ id: "c7", root_chat_id: "c7", owner_id: "bob" }, "waiting");
  expect([...read, queryClient.getQueryState(["me", "spend"])!.isInvalidated]).toEqual([false, true, false, true, false]);
});

test("a chat of somebody else comes into the list of shared chats, and into no other", () => {
  queryClient.setQueryData(["me"], { id: "ann" });
  const keys = [false, true].map((shared) => ["chats", { archived: false, shared, q: "" }]);
  for (const key of keys) queryClient.setQueryData(key, { pages: [{ items: [] }], pageParams: [""] });
  tell({ id: "c4", root_chat_id: "c4", owner_id: "bob" }, "waiting");
  tell({ id: "c5", root_chat_id: "c5" }, "waiting");
  const listed = keys.map((key) => queryClient.getQueryData<{ pages: { items: Chat[] }[] }>(key)!.pages[0]!.items.map((each) => each.id));
  expect(listed).toEqual([["c5"], ["c4"]]);
});

test("a chat of the list is compared with it at its first event", () => {
  const listed = { ...CHAT, id: "c3", root_chat_id: "c3", status: "running", versions: { snapshot: 0 } };
  queryClient.setQueryData(["chats", {}], { pages: [{ items: [listed] }], pageParams: [""] });
  tell({ id: "c3", root_chat_id: "c3" }, "running");
  expect(isReadAgain()).toBe(false);
  tell({ id: "c3", root_chat_id: "c3" }, "waiting");
  expect(isReadAgain()).toBe(true);
});
