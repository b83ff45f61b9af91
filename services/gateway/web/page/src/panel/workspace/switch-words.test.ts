import { expect, test } from "vitest";
import { leftBehind, OWN_FILES, switchProblem, workspaceOptions } from "./switch-words.ts";

const workspace = (id: string, state: "ready" | "stopped" | "failed") => ({ id, name: `w-${id}`, state, template_name: null });

test("workspaces that failed are not offered, and the present one always is", () => {
  const all = [workspace("a", "ready"), workspace("b", "failed"), workspace("c", "stopped")];
  expect(workspaceOptions(all, OWN_FILES).map(([, words]) => words)).toEqual(["Own files of this chat", "w-a", "w-c · stopped"]);
  expect(workspaceOptions(all, "b").map(([id]) => id)).toEqual(["", "a", "b", "c"]);
  expect(workspaceOptions(all, "x").at(-1)).toEqual(["x", "The present one"]);
});

test("a workspace is switched between turns, and by the chat that started an agent", () => {
  expect(switchProblem({ status: "waiting", parent_chat_id: null })).toBe("");
  expect(switchProblem({ status: "error", parent_chat_id: null })).toBe("");
  expect(switchProblem({ status: "running", parent_chat_id: null })).toContain("turn has ended");
  expect(switchProblem({ status: "waiting", parent_chat_id: "p" })).toContain("started it");
});

test("what stays behind names the workspace", () => {
  expect(leftBehind("w-a")[0]).toContain("w-a");
  expect(leftBehind(undefined)[0]).toContain("the present directory");
});
