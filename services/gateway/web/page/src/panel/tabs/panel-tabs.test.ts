import { expect, test } from "vitest";
import { type ChatTabs, CHATS_MAX, parsedTabs, tabsOf, withTabs } from "./panel-tabs.ts";

const tabs = (chatId: string, open: string, hidden: string[] = []): ChatTabs => ({ chatId, open, hidden });

test("each chat has its own tab, and a new one begins with that which was opened last", () => {
  const all = [tabs("a", "files", ["goal"]), tabs("b", "changes")];
  expect(tabsOf(all, "a")).toEqual(tabs("a", "files", ["goal"]));
  expect(tabsOf(all, "new")).toEqual(tabs("new", "changes"));
  expect(tabsOf([], "new").open).toBe("");
});

test("a change counts as the last one, and old chats are forgotten", () => {
  const many = Array.from({ length: CHATS_MAX }, (_, place) => tabs(`c${place}`, "files"));
  const changed = withTabs(many, tabs("c0", "debug"));
  expect([changed.length, changed[0]?.chatId, changed.at(-1)]).toEqual([CHATS_MAX, "c1", tabs("c0", "debug")]);
  expect(withTabs(many, tabs("new", "files"))[0]?.chatId).toBe("c1");
});

test("what is stored and is no list of tabs is left out", () => {
  expect(parsedTabs(null)).toEqual([]);
  expect(parsedTabs("{")).toEqual([]);
  expect(parsedTabs('{"a": 1}')).toEqual([]);
  expect(parsedTabs(JSON.stringify([null, { chatId: 1 }, tabs("a", "files")]))).toEqual([tabs("a", "files")]);
});
