import { expect, test } from "vitest";
import { touchedBy } from "./touched.ts";

const PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n-x\n+y\n*** Move to: b.txt\n*** Add File: c d.txt\n+*** Delete File: none\n*** Delete File: e\n*** End Patch";

test.each([
  ["execute", { command: "ls", workdir: "/srv" }, { what: "It runs in", names: ["/srv"] }],
  ["execute", { command: "ls" }, { what: "It runs in the workspace", names: [] }],
  ["write_file", { path: "a.txt", content: "path" }, { what: "It changes", names: ["a.txt"] }],
  ["edit_files", { files: [{ path: "a" }, { path: "b" }, { path: "a" }] }, { what: "It changes", names: ["a", "b"] }],
  ["edit_files", {}, null],
  ["apply_patch", { patch: PATCH }, { what: "It changes", names: ["a.txt", "b.txt", "c d.txt", "e"] }],
  ["process_write", { process_id: "p1", text: "y" }, { what: "It reaches the process", names: ["p1"] }],
  ["github__push", { branch: "main" }, { what: "It calls the server", names: ["github"] }],
  ["measure_tide", {}, null],
])("%s with %j touches %j", (tool, args, touched) => {
  expect(touchedBy(tool, args)).toEqual(touched);
});
