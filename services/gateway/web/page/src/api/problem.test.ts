import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { moment } from "../ui/format.ts";
import { Problem, type ProblemDocument, wordsOf } from "./problem.ts";

const NOW = Date.parse("2026-11-19T12:00:00Z");
const refused = (wait: number) => new Problem({ title: "Too much", detail: "The limit is reached.", status: 429, code: "USAGE_LIMIT", retry_after_ms: wait } as ProblemDocument);

beforeEach(() => void vi.useFakeTimers({ now: NOW }));
afterEach(() => void vi.useRealTimers());

test.each([
  [1_500, "The limit is reached. Try again in 2 seconds."],
  [20 * 60_000, "The limit is reached. Try again in 20 minutes."],
  [3 * 3_600_000, `The limit is reached. Try again in 3 hours, on ${moment(NOW + 3 * 3_600_000)}.`],
  [11.5 * 86_400_000, `The limit is reached. Try again in 12 days, on ${moment("2026-12-01T00:00:00Z")}.`],
])("a wait of %d ms is told as people say it", (wait, words) => expect(wordsOf(refused(wait))).toBe(words));
