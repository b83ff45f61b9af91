/** The states of the start in the component story format, each with what must hold in it. */
import { expect } from "vitest";
import { settled } from "../testing/canvas.tsx";
import { broken, type Answer, serve, serveNothingYet } from "../testing/server.ts";
import { button, type Story } from "../testing/stories.tsx";
import StartScreen from "./start.tsx";

function served(role: string, models: Answer): void {
  serve({ "/api/v1/me": { id: "u1", login: "ada", display_name: "Ada", role }, "/api/v1/models": models });
}

const DEMO = { id: "scripted", provider_id: "scripted", name: "scripted", display_name: "Scripted demo", enabled: true };

const composer = (canvas: HTMLElement): Element | null => canvas.querySelector(".composer textarea");

/** One writes before anything is read. */
export const Loading: Story = {
  before: serveNothingYet,
  render: () => <StartScreen />,
  async play(canvas) {
    expect(composer(canvas)).not.toBeNull();
  },
};

/** Without a provider an administrator is told where to add one. */
export const NoModelForAdministrators: Story = {
  before: () => served("admin", { items: [], next_cursor: null }),
  render: () => <StartScreen />,
  async play(canvas) {
    await settled(() => expect(canvas.querySelector(".notice a")?.getAttribute("href")).toBe("/admin/providers"));
    expect(canvas.querySelector("h1")?.textContent).toContain("Ada");
  },
};

/** A member is told who can do that. */
export const NoModelForMembers: Story = {
  before: () => served("member", { items: [], next_cursor: null }),
  render: () => <StartScreen />,
  async play(canvas) {
    await settled(() => expect(canvas.textContent).toContain("ask an administrator to add a provider"));
    expect(canvas.querySelector(".notice a")).toBeNull();
  },
};

/** What could not be read of models does not keep one from writing. */
export const Failed: Story = {
  before: () => serve({}, broken),
  render: () => <StartScreen />,
  async play(canvas) {
    await settled(() => expect(composer(canvas)).not.toBeNull());
    expect(canvas.textContent).not.toContain("The scripted demo answers");
  },
};

/** What the demo understands is put into the composer, and can be changed before it is sent. */
export const Idea: Story = {
  before: () => served("member", { items: [DEMO], next_cursor: null }),
  render: () => <StartScreen />,
  async play(canvas, press) {
    await settled(() => expect(button(canvas, "Run a command")).not.toBeUndefined());
    await press(button(canvas, "Run a command")!);
    expect((composer(canvas) as HTMLTextAreaElement).value).toBe("run: ls -la /");
    localStorage.clear();
  },
};

/** Where a model is there nothing is said of the demo. */
export const WithModel: Story = {
  before: () => served("member", { items: [DEMO, { ...DEMO, id: "m1", provider_id: "p1", name: "large", display_name: "Large" }], next_cursor: null }),
  render: () => <StartScreen />,
  async play(canvas) {
    await settled(() => expect(composer(canvas)).not.toBeNull());
    await settled(() => expect(canvas.querySelector("h1")?.textContent).toContain("Ada"));
    expect(canvas.textContent).not.toContain("The scripted demo answers");
  },
};
