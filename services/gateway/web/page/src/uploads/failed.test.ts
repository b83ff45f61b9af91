import { expect, test } from "vitest";
import { whenSignedOut } from "../api/transport.ts";
import { NO_DRAFT } from "../composer/drafts.ts";
import { outcomeOf, withReturned } from "./failed.ts";
import { storedIn } from "./upload.ts";

const FAILED = { name: "log.txt", pasted: null, isShown: true, error: new Error("The disk is full.") };

test("a file that failed stays in a composer that is shown, and is complained about otherwise", () => {
  expect(outcomeOf(FAILED)).toEqual({ kind: "kept", problem: "The disk is full." });
  expect(outcomeOf({ ...FAILED, isShown: false })).toEqual({ kind: "gone", words: "log.txt was not attached. The disk is full." });
});

test.each([true, false])("pasted text goes back into the message, with its composer shown: %s", (isShown) => {
  const outcome = outcomeOf({ ...FAILED, pasted: "a long text", isShown });
  expect(outcome).toMatchObject({ kind: "returned", text: "a long text" });
});

test("a text that comes back follows what is written", () => {
  expect(withReturned(NO_DRAFT, "pasted").text).toBe("pasted");
  expect(withReturned({ ...NO_DRAFT, text: "Read this:" }, "pasted").text).toBe("Read this:\n\npasted");
});

test("an upload after the end of the session leads to the sign-in", async () => {
  let count = 0;
  whenSignedOut(() => {
    count += 1;
  });
  try {
    await expect(storedIn(new Response("", { status: 401 }))).rejects.toThrow("401");
    await expect(storedIn(new Response("", { status: 413 }))).rejects.toThrow("413");
    expect(count).toBe(1);
  } finally {
    whenSignedOut(() => {});
  }
});

test("a file that was stored is known by what the server says of it", async () => {
  const answer = { id: "f1", name: "log.txt", media_type: "text/plain", size_bytes: 3 };
  const stored = await storedIn(new Response(JSON.stringify(answer), { status: 201 }));
  expect(stored).toEqual({ id: "f1", name: "log.txt", mediaType: "text/plain", sizeBytes: 3 });
});
