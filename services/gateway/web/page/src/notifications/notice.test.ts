import { expect, test } from "vitest";
import { isWatched, pushedOf, shownAs, windowAt } from "./notice.ts";

const ASKS = { kind: "asks", chat_id: "c1", title: "Shop", body: "Which table?", path: "/chats/c1" };
const at = (path: string, focused = false) => ({ url: `https://chat.example.org${path}`, focused });

test("a message is read, and what is none is left out", () => {
  const texts = [JSON.stringify(ASKS), "", "[]", "null", "{", '{"kind":"other"}', '{"kind":1}'];
  expect(texts.map(pushedOf)).toEqual([ASKS, ...Array<undefined>(6).fill(undefined)]);
});

test("a message without words says what happened, and leads to no other site", () => {
  const paths = ["//elsewhere.example", "https://elsewhere.example", "/\\elsewhere.example", "", 7].map(
    (path) => pushedOf(JSON.stringify({ kind: "finished", path }))!,
  );
  const said = { kind: "finished", chat_id: "", title: "A turn has ended", body: "A turn has ended", path: "/" };
  expect(paths).toEqual(paths.map(() => said));
});

test("a later message of a chat takes the place of the one before, and is heard if it asks", () => {
  const finished = shownAs({ ...ASKS, kind: "finished" });
  expect(finished).toEqual({ body: "Which table?", tag: "c1", renotify: false, data: { path: "/chats/c1" } });
  expect(shownAs(ASKS)).toEqual({ ...finished, renotify: true });
});

test("only a window that has the focus and shows the chat is one that is watched", () => {
  const windows = [[at("/chats/c1", true)], [at("/chats/c1")], [at("/", true), at("/chats/c1")], []];
  expect(windows.map((each) => isWatched("/chats/c1", each))).toEqual([true, false, false, false]);
});

test("the window that shows the chat is used, and no other", () => {
  const windows = [[at("/"), at("/chats/c1")], [at("/settings"), at("/")], []];
  expect(windows.map((each) => windowAt("/chats/c1", each))).toEqual([at("/chats/c1"), undefined, undefined]);
});
