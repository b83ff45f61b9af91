// @vitest-environment happy-dom
import { afterEach, expect, test, vi } from "vitest";
import { allTools } from "./tools.tsx";

afterEach(() => vi.unstubAllGlobals());

test("all pages of a large catalogue are read, in their order", async () => {
  const asked: (string | null)[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    const cursor = new URL(request.url).searchParams.get("cursor");
    asked.push(cursor);
    const first = Number(cursor ?? 0);
    const items = Array.from({ length: 500 }, (_, index) => ({ original_name: `tool-${first + index}` }));
    return Response.json({ items, state: "ready", next_cursor: first < 1500 ? String(first + 500) : null });
  });
  const read = await allTools("s1", new AbortController().signal);
  expect(asked).toEqual([null, "500", "1000", "1500"]);
  expect([read.items.length, read.items.at(-1)?.original_name, read.state]).toEqual([2000, "tool-1999", "ready"]);
});
