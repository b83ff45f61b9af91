import { expect, test } from "vitest";
import { isLive, type Monitor, wordsOfMonitor } from "./monitor-words.ts";

const WAITING = { state: "waiting", cause: null, detail: null, reason: null, expires_at: "2026-11-17T12:00:00Z" } as Monitor;
const time = (at: string): string => at.slice(11, 16);

test.each([
  ["one that waits", {}, true, "The chat is woken at 12:00 at the latest."],
  ["one with a line", { state: "due", cause: "matched", detail: "ready 7" }, true, "The process printed: ready 7 The chat is woken when it is at rest."],
  ["one that woke its chat at the end", { state: "woken", cause: "exited", detail: "exit code 3" }, false, "The process ended: exit code 3"],
  ["one whose process is lost", { state: "woken", cause: "lost" }, false, "The process cannot be watched any more."],
  ["one whose time was over", { state: "woken", cause: "timed_out" }, false, "Nothing of this happened in time."],
  ["one that was cancelled", { state: "ended", reason: "Its owner cancelled it." }, false, "Its owner cancelled it."],
  ["one whose message was refused", { state: "ended", cause: "exited", reason: "No money." }, false, "The process ended. No money."],
])("%s", (_name, other, live, words) => {
  const monitor = { ...WAITING, ...other } as Monitor;
  expect(isLive(monitor)).toBe(live);
  expect(wordsOfMonitor(monitor, time)).toBe(words);
});
