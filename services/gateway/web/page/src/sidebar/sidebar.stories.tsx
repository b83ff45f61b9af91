/** The states of the list of chats in the component story format, each with what must hold in it. */
import { expect } from "vitest";
import { settled } from "../testing/canvas.tsx";
import { broken, serve, serveNothingYet } from "../testing/server.ts";
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
