/** The states of what waits for a person in the component story format, each with what must hold in it. */
import { expect } from "vitest";
import { settled } from "../testing/canvas.tsx";
import { broken, serve, serveNothingYet } from "../testing/server.ts";
import { button, type Story } from "../testing/stories.tsx";
import WaitingScreen from "./screen.tsx";

async function shows(canvas: HTMLElement, text: string): Promise<void> {
  await settled(() => expect(canvas.textContent).toContain(text));
}

const title = (canvas: HTMLElement): string | null | undefined => canvas.querySelector("h1")?.textContent;

const NOTHING = { "/api/v1/actions": { items: [] }, "/api/v1/unknown-outcomes": { items: [] } };
const PLAN = { id: "a1", chat_id: "c1", chat_title: "Tides", kind: "plan", tool_name: "propose_plan", args: { title: "Release", plan: "Tag it" }, asked_at: null };
const UNKNOWN = { chat_id: "c2", chat_title: "Moons", message_id: 17, tool_call_id: "call", tool_name: "execute", args: { command: "git push" }, ended_at: null, root_chat_id: "c2" };

/** The title and the way to the chats are there at once. */
export const Loading: Story = {
  before: serveNothingYet,
  render: () => <WaitingScreen />,
  async play(canvas) {
    expect([title(canvas), canvas.querySelector(".skeleton") !== null]).toEqual(["What waits for you", true]);
    expect(button(canvas, "Show the list of chats")).toBeDefined();
  },
};

/** Nothing waits: what would be here, and where to go. */
export const Nothing: Story = {
  before: () => serve(NOTHING),
  render: () => <WaitingScreen />,
  async play(canvas) {
    await shows(canvas, "Nothing waits for you");
    expect(canvas.querySelector("a[href='/']")?.textContent).toBe("Begin a chat");
  },
};

/** What failed is read again. */
export const Failed: Story = {
  before: () => serve({}, broken),
  render: () => <WaitingScreen />,
  async play(canvas, press) {
    await shows(canvas, "The list could not be read");
    serve(NOTHING);
    await press(button(canvas, "Retry")!);
    await shows(canvas, "Nothing waits for you");
  },
};

/** What all chats ask is in one place, each with its chat and its answers. */
export const Asked: Story = {
  before: () => serve({ ...NOTHING, "/api/v1/actions": { items: [PLAN, { ...PLAN, id: "a2", chat_id: "c3", chat_title: "", kind: "approval", tool_name: "execute", args: { command: "make" } }] } }),
  render: () => <WaitingScreen />,
  async play(canvas) {
    await shows(canvas, "Plan: Release");
    expect([...canvas.querySelectorAll(".waiting-chat a")].map((each) => [each.textContent, each.getAttribute("href")])).toEqual([["Tides", "/chats/c1"], ["A chat", "/chats/c3"]]);
    expect([button(canvas, "Accept"), button(canvas, "Allow once")]).not.toContain(undefined);
    expect(canvas.textContent).not.toContain("Nothing waits for you");
  },
};

/** A call that may have run is shown with what it would have done, and leads to its place in the chat. */
export const MayHaveRun: Story = {
  before: () => serve({ ...NOTHING, "/api/v1/unknown-outcomes": { items: [UNKNOWN] } }),
  render: () => <WaitingScreen />,
  async play(canvas) {
    await shows(canvas, "It is not known whether a command ran");
    expect(canvas.querySelector(".terminal-command")?.textContent).toBe("$ git push");
    expect([...canvas.querySelectorAll("ul a")].map((each) => each.getAttribute("href"))).toEqual(["/chats/c2#m17", "/chats/c2#m17"]);
    expect(canvas.textContent).toContain("Your next message in that chat takes this off the list.");
    expect(canvas.textContent).not.toContain("Nothing waits for you");
  },
};

/** A message to an agent leaves its calls on the list, so the chat whose messages count is linked. */
export const AgentMayHaveRun: Story = {
  before: () => serve({ ...NOTHING, "/api/v1/unknown-outcomes": { items: [{ ...UNKNOWN, root_chat_id: "c1" }] } }),
  render: () => <WaitingScreen />,
  async play(canvas) {
    await shows(canvas, "Your next message in the chat that this agent works for takes this off the list");
    expect([...canvas.querySelectorAll("ul a")].map((each) => each.getAttribute("href"))).toEqual(["/chats/c2#m17", "/chats/c1", "/chats/c2#m17"]);
  },
};

/** What is asked is answered also while the calls that may have run cannot be read. */
export const AskedAlone: Story = {
  before: () => serve({ "/api/v1/actions": { items: [PLAN] } }, broken),
  render: () => <WaitingScreen />,
  async play(canvas) {
    await shows(canvas, "Plan: Release");
    await shows(canvas, "could not be read");
    expect(button(canvas, "Accept")).toBeDefined();
  },
};
