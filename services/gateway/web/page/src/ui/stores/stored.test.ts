// @vitest-environment happy-dom
import { afterEach, expect, test, vi } from "vitest";
import { readDraft, writeDraft } from "../../composer/drafts.ts";
import { readStored, storedKeys, writeStored } from "./stored.ts";

afterEach(() => {
  vi.unstubAllGlobals();
  localStorage.clear();
});

/** Be a browser whose storage refuses everything, as private windows and full disks do. */
function refuse(): void {
  const refused = (): never => {
    throw new DOMException("refused", "QuotaExceededError");
  };
  vi.stubGlobal("localStorage", new Proxy({}, { get: () => refused, ownKeys: refused }));
}

test("what is stored is read again and found by the begin of its key", () => {
  expect(writeStored("parley.a.1", "one")).toBe(true);
  expect([readStored("parley.a.1"), storedKeys("parley.a."), readStored("parley.b")]).toEqual(["one", ["parley.a.1"], null]);
  writeStored("parley.a.1", null);
  expect(readStored("parley.a.1")).toBeNull();
});

test("storage that is full, private or switched off fails nothing, and is told", () => {
  refuse();
  expect([writeStored("parley.a", "one"), readStored("parley.a"), storedKeys("parley.")]).toEqual([false, null, []]);
  writeDraft("c1", { text: "a thought", files: [], references: [] });
  expect(readDraft("c1").text).toBe("");
});

test("a draft that is no draft any more is an empty one", () => {
  localStorage.setItem("parley.draft.c1", "{broken");
  localStorage.setItem("parley.draft.c2", '{"text": 3, "files": "none"}');
  expect(readDraft("c1")).toEqual({ text: "", files: [], references: [] });
  expect(readDraft("c2")).toEqual({ text: "3", files: [], references: [] });
});
