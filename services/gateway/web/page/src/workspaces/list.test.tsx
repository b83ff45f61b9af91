// @vitest-environment happy-dom
import { beforeEach, expect, test } from "vitest";
import type { components } from "../api/schema.d.ts";
import { newCanvas, settled } from "../testing/canvas.tsx";
import { serve } from "../testing/server.ts";
import { button } from "../testing/stories.tsx";
import { WorkspaceList } from "./list.tsx";

const canvas = newCanvas();
const ID = "ba217784-0000-4000-8000-000000000001";

beforeEach(() => serve({ "/api/v1/chats": { items: [{ id: ID, title: "Tides" }], next_cursor: null } }));

test("workspaces of chats have their titles, and the copies of agents are shown when they are asked for", async () => {
  const rows = [`chat-${ID}`, `agent-${ID}`, "tide"].map((name) => ({ id: name, name, owner_id: "u1", state: "stopped", usage: null, deadline: null, last_used_at: null }));
  await canvas.show(<WorkspaceList rows={rows as unknown as components["schemas"]["Workspace"][]} empty="" onChanged={async () => {}} />);
  const names = (): (string | null)[] => [...canvas.element.querySelectorAll(".cell-main")].map((each) => each.textContent);
  await settled(() => expect(names()).toEqual(["Files of “Tides”", "tide"]));
  await canvas.press(button(canvas.element, "Show 1 copy that agents work in")!);
  expect(names()).toEqual(["Files of “Tides”", "Copy of an agent (ba217784)", "tide"]);
});
