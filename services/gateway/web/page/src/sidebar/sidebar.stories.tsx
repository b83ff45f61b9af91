/** The states of the list of chats in the component story format, each with what must hold in it. */
import { expect, vi } from "vitest";
import { settled } from "../testing/canvas.tsx";
import { absent, broken, serve, serveNothingYet } from "../testing/server.ts";
import { button, type Story } from "../testing/stories.tsx";
import { Sidebar } from "./sidebar.tsx";

const NOTHING = { "/api/v1/chats": { items: [], next_cursor: null } };
const PANE = { width: null, choose: () => {} };

function at(search: string): void {
  history.replaceState(null, "", `/${search}`);
}

async function shows(canvas: HTMLElement, text: string): Promise<void> {
  await settled(() => expect(canvas.textContent).toContain(text));
}

/** New chats are begun before the list is there. */
export const Loading: Story = {
  before: () => {
    at("");
    serveNothingYet();
  },
  render: () => <Sidebar pane={PANE} />,
  async play(canvas) {
    expect(canvas.querySelector(".skeleton")?.getAttribute("aria-label")).toBe("Loading chats");
    expect(button(canvas, "New chat")).toBeDefined();
  },
};

/** An empty list says what makes a chat. */
export const NoChats: Story = {
  before: () => serve(NOTHING),
  render: () => <Sidebar pane={PANE} />,
  async play(canvas) {
    await shows(canvas, "No chats yet. New chat begins the first one.");
  },
};

/** What failed without a connection is read again once there is one. */
export const BackOnline: Story = {
  before: () => serve({}, broken),
  render: () => <Sidebar pane={PANE} />,
  async play(canvas) {
    await shows(canvas, "The database does not answer.");
    serve(NOTHING);
    dispatchEvent(new Event("offline"));
    dispatchEvent(new Event("online"));
    await shows(canvas, "No chats yet.");
  },
};

/** Chats of others are behind a line that says how many there are. */
export const SharedWithMe: Story = {
  before: () => {
    const shared = { id: "c1", root_chat_id: "c1", owner_id: "u2", owner_name: "Grace", title: "Tides", status: "waiting", shared: true, versions: { snapshot: 1 } };
    vi.stubGlobal("fetch", async (request: Request) => {
      const isShared = new URL(request.url).searchParams.get("shared_with_me") === "true";
      return request.url.includes("/api/v1/chats") ? Response.json({ items: isShared ? [shared] : [], next_cursor: null }) : absent();
    });
  },
  render: () => <Sidebar pane={PANE} />,
  async play(canvas, press) {
    await shows(canvas, "1 chat shared with you");
    await shows(canvas, "No chats yet.");
    await press(button(canvas, "1 chat shared with you")!);
    await shows(canvas, "shared by Grace");
    expect(location.search).toBe("?show=shared");
  },
};

/** What failed is read again. */
export const Failed: Story = {
  before: () => serve({}, broken),
  render: () => <Sidebar pane={PANE} />,
  async play(canvas, press) {
    await shows(canvas, "The database does not answer.");
    serve(NOTHING);
    await press(button(canvas, "Retry")!);
    await shows(canvas, "No chats yet.");
  },
};
