import { expect, test } from "vitest";
import type { Model } from "../api/types.ts";
import { bestOf, type Candidate, isOver, nameFor, type Race, uncheckedOf } from "./race.ts";

function candidate(position: number, status: Candidate["status"], duration_ms = 0): Candidate {
  return { position, status, duration_ms, check: null } as Candidate;
}

const MODELS = [
  { id: "1", name: "a" },
  { id: "2", name: "b" },
  { id: "3", name: "b" },
] as Model[];

test("a model is named by its name unless another one has the same", () => {
  expect(["1", "2", "gone"].map((id) => nameFor(id, MODELS))).toEqual(["a", "2", "gone"]);
});

test("a race is over when all candidates ended, or never start because it was cancelled", () => {
  const found = { candidates: [candidate(1, "done"), candidate(2, "starting")], cancelled_at: null } as unknown as Race;
  expect([isOver(found), isOver({ ...found, cancelled_at: "2026-11-17T10:00:00Z" })]).toEqual([false, true]);
});

test("candidates that have ended are to be checked, if there is a check and the race goes on", () => {
  const found = { check_command: "true", cancelled_at: null, candidates: [candidate(1, "done"), candidate(2, "running")] } as unknown as Race;
  expect(uncheckedOf(found)).toBe("1");
  expect(uncheckedOf({ ...found, check_command: null })).toBe("");
  expect(uncheckedOf({ ...found, cancelled_at: "2026-11-17T10:00:00Z" })).toBe("");
});

test("the best is marked if it is better than another one that succeeded", () => {
  const slow = candidate(1, "done", 9);
  expect(bestOf([slow, candidate(2, "done", 3), candidate(3, "failed", 1)], (each) => each.duration_ms)).toEqual(new Set([2]));
  expect(bestOf([slow, candidate(3, "failed", 1)], (each) => each.duration_ms)).toEqual(new Set());
});
