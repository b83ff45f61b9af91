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
  before: () => serve({ "/api/v1/actions": { items: [] } }),
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
    serve({ "/api/v1/actions": { items: [] } });
    await press(button(canvas, "Retry")!);
    await shows(canvas, "Nothing waits for you");
  },
};
