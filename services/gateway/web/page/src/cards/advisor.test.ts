import { expect, test } from "vitest";
import type { ToolResultPart } from "../api/types.ts";
import { advisorState } from "./advisor.tsx";

function ended(outcome: string, result: unknown): ToolResultPart {
  return { outcome, result } as unknown as ToolResultPart;
}

test("a question to the advisor runs, is answered, meets its limit, or fails", () => {
  const states = [
    advisorState({ result: null, standing: "running" }),
    advisorState({ result: ended("done", { type: "advice" }), standing: "done" }),
    advisorState({ result: ended("done", { type: "limit_reached" }), standing: "done" }),
    advisorState({ result: ended("failed", { type: "error" }), standing: "failed" }),
    advisorState({ result: null, standing: "unknown" }),
  ];
  expect(states).toEqual(["running", "advice", "limit_reached", "error", "error"]);
});
