import { expect, test, vi } from "vitest";

vi.stubGlobal("matchMedia", () => ({ matches: false }));
const { beginning, revealed } = await import("./smooth.ts");

const FRAME_MS = 1000 / 60;

/** Return how far behind a text of a steady rate is shown, at most and at the end. */
function behind(perS: number, seconds: number): { most: number; last: number } {
  let shown = 0;
  let most = 0;
  let total = 0;
  for (let frame = 0; frame < seconds * 60; frame += 1) {
    total += perS / 60;
    shown = revealed(shown, total, FRAME_MS);
    most = Math.max(most, total - shown);
  }
  return { most, last: total - shown };
}

test("text is never shown far behind, however fast it comes", () => {
  for (const perS of [20, 100, 400, 2000]) expect(behind(perS, 10).most).toBeLessThan(120.1);
});

test("a piece is shown over several frames, and then all of it", () => {
  const first = revealed(0, 60, FRAME_MS);
  expect(first).toBeGreaterThan(0);
  expect(first).toBeLessThan(10);
  let shown = first;
  for (let frame = 0; frame < 120; frame += 1) shown = revealed(shown, 60, FRAME_MS);
  expect(shown).toBe(60);
});

test("what came while the tab was hidden is shown at once", () => {
  expect(revealed(0, 5_000, FRAME_MS)).toBe(4_880);
});

test("no half of a character is shown", () => {
  expect(beginning("a😀b", 2)).toBe("a");
  expect(beginning("a😀b", 3.7)).toBe("a😀");
});
