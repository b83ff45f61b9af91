import { expect, test } from "vitest";
import { lifetimeOf, lifetimeOfTemplate, stoppedWords, stopsSoonWords } from "./lifetime-words.ts";

const HOUR = 3_600_000;

test("a workspace says where its lifetime comes from", () => {
  const words = (["template", "installation", "requested", null] as const).map((ttl_source) =>
    lifetimeOf({ ttl_ms: 2 * HOUR, ttl_source, is_ttl_fixed: false }),
  );
  expect(words).toEqual([
    "2 h, set by its template",
    "2 h, set for this installation",
    "2 h, chosen for this workspace",
    "2 h",
  ]);
});

test("a fixed lifetime says that only use extends it", () => {
  const fixed = { ttl_ms: HOUR / 2, ttl_source: "template", is_ttl_fixed: true } as const;
  expect(lifetimeOf(fixed)).toBe("30 min, fixed by its template: only use extends it");
});

test("a template says how long its workspaces live", () => {
  expect(lifetimeOfTemplate({ ttl_ms: 0, ttl_max_ms: 0, is_ttl_fixed: false })).toBe("no end");
  expect(lifetimeOfTemplate({ ttl_ms: HOUR, ttl_max_ms: 8 * HOUR, is_ttl_fixed: true })).toBe("1 h, at most 8 h, fixed");
});

test("a workspace warns five minutes before it stops, and says why it stopped", () => {
  const now = Date.parse("2026-11-18T12:00:00Z");
  const soon = (deadline: string | null, state: "ready" | "stopped" = "ready") => stopsSoonWords({ state, deadline }, now);
  expect(soon("2026-11-18T12:06:00Z")).toBe("");
  expect(soon("2026-11-18T12:04:30Z")).toBe("It stops in 5 min unless it is used.");
  expect(soon("2026-11-18T11:59:00Z")).toBe("It stops now.");
  expect([soon(null), soon("2026-11-18T12:01:00Z", "stopped")]).toEqual(["", ""]);
  expect(stoppedWords({ state: "stopped", stop_reason: "autostop" })).toContain("its time was up");
  expect(stoppedWords({ state: "ready", stop_reason: "autostop" })).toBe("");
});
