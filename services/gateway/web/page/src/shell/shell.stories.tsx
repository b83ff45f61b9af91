/** The states of the frame of all screens in the component story format, each with what must hold in it. */
import { act } from "react";
import { expect, vi } from "vitest";
import { settled } from "../testing/canvas.tsx";
import { broken, PENDING, serve, serveNothingYet } from "../testing/server.ts";
import { button, type Story } from "../testing/stories.tsx";
import { Shell } from "./shell.tsx";

const ME = { "/api/v1/me": { id: "u1", login: "ada", display_name: "Ada", role: "member" } };
const OFFLINE = "You are offline. What you write is kept and sent once you are back.";

function page() {
  return <Shell><main>The screen</main></Shell>;
}

/** The frame is there before anything is read. */
export const Loading: Story = {
  before: serveNothingYet,
  render: page,
  async play(canvas) {
    expect(canvas.textContent).toContain("The screen");
    expect(canvas.querySelector("nav[aria-label=Chats]")).not.toBeNull();
    expect(canvas.textContent).not.toContain(OFFLINE);
  },
};

/** Without a network the page says so, and what becomes of what is written. */
export const Offline: Story = {
  before: () => {
    serve(ME, () => PENDING);
    vi.spyOn(navigator, "onLine", "get").mockReturnValue(false);
  },
  render: page,
  async play(canvas) {
    expect(canvas.querySelector(".shell-offline[role=status]")?.textContent).toBe(OFFLINE);
    vi.restoreAllMocks();
    await act(async () => void dispatchEvent(new Event("online")));
    expect(canvas.querySelector(".shell-offline")).toBeNull();
  },
};

/** A server that fails is asked again. */
export const Failed: Story = {
  before: () => serve({}, broken),
  render: page,
  async play(canvas, press) {
    await settled(() => expect(canvas.querySelector("h1")?.textContent).toBe("The page could not be read"));
    serve(ME, () => PENDING);
    await press(button(canvas, "Retry")!);
    await settled(() => expect(canvas.textContent).toContain("The screen"));
  },
};

/** The menu of the person lists the keys, and so does `?`. */
export const Keys: Story = {
  before: () => serve(ME, () => PENDING),
  render: page,
  async play(canvas, press) {
    const listed = () => [...canvas.querySelectorAll(".keys tr:has(td)")].map((each) => [...each.children].map((cell) => cell.textContent));
    await settled(() => expect(button(canvas, "Ada")).toBeDefined());
    await press(button(canvas, "Ada")!);
    await press([...canvas.querySelectorAll("[role=menuitem]")].find((each) => each.textContent === "Keys")!);
    expect(canvas.querySelector("dialog")?.textContent).toContain("In the composer");
    expect(listed()).toEqual(expect.arrayContaining([
      ["CtrlShiftV", "Paste a long text as text, not as a file"],
      ["@", "Resources of MCP servers"],
      ["AltUp and Down", "Move a queued message, or a key of a provider"],
    ]));
    await press(button(canvas, "Close")!);
    expect(listed()).toEqual([]);
    await act(async () => void document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "?", bubbles: true })));
    expect(listed()).not.toEqual([]);
  },
};
