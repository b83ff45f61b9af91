import { expect, test } from "vitest";
import type { Chat } from "../api/types.ts";
import { groupsOf } from "./groups.ts";

const NOW = new Date(2026, 10, 16, 12).getTime();
const HOUR = 3_600_000;

function chat(id: string, hoursAgo: number, pin = 0): Chat {
  const at = new Date(NOW - hoursAgo * HOUR).toISOString();
  return { id, updated_at: at, pin_order: pin, archived: false } as Chat;
}

test("pinned chats come first by their order, the others by day, and none twice", () => {
  const chats = [chat("old", 400), chat("b", 2, 2), chat("now", 0), chat("a", 90, 1), chat("late", 14), chat("now", 0)];
  const shown = groupsOf(chats, NOW, "day").map((group) => [group.title, group.chats.map((each) => each.id)]);
  expect(shown).toEqual([
    ["Pinned", ["a", "b"]],
    ["Today", ["now"]],
    ["Yesterday", ["late"]],
    ["Older", ["old"]],
  ]);
});

test("by status what waits for an answer comes first, and chats at rest last", () => {
  const chats = [chat("rest", 1), chat("new", 9), chat("busy", 2), chat("asks", 3), chat("pinned", 5, 1), chat("broken", 4)];
  Object.assign(chats[1]!, { has_unread: true });
  Object.assign(chats[2]!, { status: "running" });
  Object.assign(chats[3]!, { status: "requires_action" });
  Object.assign(chats[5]!, { status: "error" });
  const shown = groupsOf(chats, NOW, "status").map((group) => group.chats.map((each) => each.id));
  expect(shown).toEqual([["pinned"], ["asks"], ["busy"], ["broken"], ["new"], ["rest"]]);
});
