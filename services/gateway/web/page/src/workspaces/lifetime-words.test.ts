import { expect, test } from "vitest";
import { lifetimeOf, lifetimeOfTemplate } from "./lifetime-words.ts";

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
