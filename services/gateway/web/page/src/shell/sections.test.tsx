// @vitest-environment happy-dom
import { lazy } from "react";
import { beforeEach, describe, expect, test } from "vitest";
import { queryClient } from "../api/queries.ts";
import AdminScreen, { SECTIONS as ADMINISTRATION } from "../admin/screen.tsx";
import SettingsScreen, { SECTIONS as SETTINGS } from "../settings/screen.tsx";
import { LOADING, Sections } from "./sections.tsx";
import { newCanvas, settled } from "../testing/canvas.tsx";
import { broken, serve, serveNothingYet } from "../testing/server.ts";
import { button } from "../testing/stories.tsx";

const ME = { id: "u1", login: "ada", display_name: "Ada", role: "owner", email: null, etag: null };
/** Sections that read nothing of the server: what is chosen there is kept in the browser. */
const LOCAL = new Set(["display"]);
/** Sections without a list, or whose list always has an entry: the person, their session, the settings. */
const NEVER_EMPTY = new Set([
  ...["settings/profile", "settings/instructions", "settings/models", "settings/display", "settings/security"],
  ...["settings/account", "settings/access", "admin/prompts", "admin/advisor", "admin/lifetimes", "admin/retention"],
]);

const canvas = newCanvas();

async function shown(base: string, section: string): Promise<void> {
  await canvas.show(base === "settings" ? <SettingsScreen section={section} /> : <AdminScreen section={section} />);
}

const content = (): HTMLElement => canvas.element.querySelector("section[aria-label]")!;
const words = (): string => canvas.element.textContent ?? "";

describe.each([
  ...SETTINGS.map(({ name }) => ["settings", name] as const),
  ...ADMINISTRATION.map(({ name }) => ["admin", name] as const),
])("%s/%s", (base, name) => {
  // Loaded before, so that the section itself is waited for and not its file.
  beforeEach(async () => {
    serveNothingYet();
    await shown(base, name);
    await settled(() => expect(content().querySelector(`[aria-label="${LOADING}"]`)).toBeNull());
  });

  test("has a skeleton while it is read", () => {
    expect(content().querySelector("[role=status].skeleton") !== null).toBe(!LOCAL.has(name));
  });

  test.skipIf(LOCAL.has(name))("says what failed, and reads it again", async () => {
    serve({}, broken);
    await canvas.show(null);
    queryClient.clear();
    await shown(base, name);
    await settled(() => expect(words()).toContain("could not be read"));
    expect(words()).toContain("The database does not answer.");
    serve();
    await canvas.press(button(canvas.element, "Retry")!);
    await settled(() => expect(words()).toContain("is not there"));
  });

  test.skipIf(NEVER_EMPTY.has(`${base}/${name}`))("says what to do if there is nothing", async () => {
    const nothing = { items: [], next_cursor: null, by_model: [], by_chat: [], totals: {}, keys: [], providers: [], push_subscriptions: [] };
    serve({ "/api/v1/me": ME }, () => nothing);
    await canvas.show(null);
    queryClient.clear();
    await shown(base, name);
    await settled(() => expect(content().querySelector(".table-empty, .state, .panel-note, .field-hint")?.textContent).toMatch(/\w+ \w+/));
  });
});

test("the list of sections and the title stay while a section is loaded", async () => {
  const never = lazy(() => new Promise<never>(() => {}));
  const sections = [{ name: "one", title: "One", component: never }, { name: "two", title: "Two", component: never }];
  await canvas.show(<Sections base="/settings" title="Settings" sections={sections} section="two" />);
  expect([...canvas.element.querySelectorAll("h1, h2, nav a")].map((each) => each.textContent)).toEqual(["Settings", "One", "Two", "Two"]);
  expect(content().querySelector("[role=status]")?.getAttribute("aria-label")).toBe(LOADING);
});
