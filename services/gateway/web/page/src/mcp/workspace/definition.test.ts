import { expect, test } from "vitest";
import { piecesOf, stateWords, type WorkspaceServer } from "./definition.ts";

const SERVER: WorkspaceServer = {
  name: "notes",
  state: "untrusted",
  reason: null,
  command: "python3",
  arguments: ["notes.py", "a b"],
  variable_names: ["B", "A"],
  digest: "d",
  tool_names: [],
  environment: { B: "2", A: "1" },
  changed_since_trust: false,
};

test("every argument and every variable with its value is a piece of its own", () => {
  expect(piecesOf(SERVER)).toEqual([
    { name: "Program", value: "python3" },
    { name: "Argument 1", value: "notes.py" },
    { name: "Argument 2", value: "a b" },
    { name: "Variable A", value: "1" },
    { name: "Variable B", value: "2" },
  ]);
});

test("a definition that changed after it was trusted is told apart from one that never was", () => {
  expect(stateWords(SERVER).words).toBe("not trusted");
  expect(stateWords({ ...SERVER, changed_since_trust: true }).words).toBe("changed since it was trusted");
  expect(stateWords({ ...SERVER, state: "running" }).words).toBe("running");
});
