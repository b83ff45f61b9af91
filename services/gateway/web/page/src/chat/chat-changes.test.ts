// @vitest-environment happy-dom
import { afterEach, expect, test, vi } from "vitest";
import { Problem } from "../api/problem.ts";
import { queryClient } from "../api/queries.ts";
import type { Chat } from "../api/types.ts";
import { upsert } from "../stream/feed.ts";
import { ChangedMeanwhile, changeChat } from "./chat-changes.ts";

const SEEN = { id: "c1", title: "Tides", mode: null, pin_order: 0, parent_chat_id: null, status: "running", etag: "1-a", versions: { snapshot: 1 } } as unknown as Chat;
const CHANGED = { type: "about:blank", title: "Changed", status: 412, detail: "Somebody changed it meanwhile.", instance: "", code: "VERSION_CONFLICT", retryable: false };

interface Sent {
  method: string;
  condition: string | null;
}

/** Be a server whose chat has these versions one after the other: each request sees the next one. */
function serveVersions(...versions: Partial<Chat>[]): Sent[] {
  const sent: Sent[] = [];
  vi.stubGlobal("fetch", async (request: Request): Promise<Response> => {
    const current = { ...SEEN, ...(versions[Math.min(sent.length, versions.length - 1)] ?? {}) } as Chat;
    const condition = request.headers.get("If-Match");
    sent.push({ method: request.method, condition });
    if (request.method === "GET") return Response.json(current);
    if (condition !== `"${current.etag}"`) return Response.json(CHANGED, { status: 412 });
    return Response.json({ ...current, ...((await request.json()) as object), etag: "9-z" });
  });
  return sent;
}

afterEach(() => {
  queryClient.clear();
  vi.unstubAllGlobals();
});

test("a change names the version that the person saw, and is shown at once", async () => {
  queryClient.setQueryData(["chat", "c1"], SEEN);
  const sent = serveVersions({});
  expect((await changeChat(SEEN, { title: "Moons" })).title).toBe("Moons");
  expect(sent).toEqual([{ method: "PATCH", condition: '"1-a"' }]);
  expect(queryClient.getQueryData<Chat>(["chat", "c1"])?.title).toBe("Moons");
});

test("an answer that comes after a later event does not replace what that told", async () => {
  queryClient.setQueryData(["chat", "c1"], SEEN);
  vi.stubGlobal("fetch", async (): Promise<Response> => {
    upsert({ ...SEEN, title: "Stars", versions: { snapshot: 2 } } as Chat);
    return Response.json({ ...SEEN, title: "Moons" });
  });
  await changeChat(SEEN, { title: "Moons" });
  expect(queryClient.getQueryData<Chat>(["chat", "c1"])?.title).toBe("Stars");
});

test("steps of a turn are no conflict: the change is made over the version after them", async () => {
  const sent = serveVersions({ etag: "2-b" }, { etag: "2-b" }, { etag: "3-c" }, { etag: "3-c" });
  expect((await changeChat(SEEN, { title: "Moons" })).title).toBe("Moons");
  expect(sent.map((each) => [each.method, each.condition])).toEqual([
    ["PATCH", '"1-a"'], ["GET", null], ["PATCH", '"2-b"'], ["GET", null], ["PATCH", '"3-c"'],
  ]);
});

test("what somebody else changed is not overwritten, and what it is now is told", async () => {
  const sent = serveVersions({ etag: "2-b", title: "Stars" });
  const refused = await changeChat(SEEN, { title: "Moons" }).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(ChangedMeanwhile);
  expect((refused as ChangedMeanwhile).current.title).toBe("Stars");
  expect(sent.filter((each) => each.method === "PATCH")).toHaveLength(1);
});

test("another title does not keep the mode from being changed, and a place among the pinned is no conflict", async () => {
  serveVersions({ etag: "2-b", title: "Stars", pin_order: 3 });
  expect((await changeChat(SEEN, { mode: "plan" })).mode).toBe("plan");
  expect((await changeChat(SEEN, { pin_order: 1 })).pin_order).toBe(1);
});

test("a chat that changes with every request is given up", async () => {
  const sent = serveVersions(...Array.from({ length: 20 }, (_, step) => ({ etag: `${step + 2}-x` })));
  await expect(changeChat(SEEN, { title: "Moons" })).rejects.toBeInstanceOf(Problem);
  expect(sent.filter((each) => each.method === "PATCH")).toHaveLength(4);
});
