// @vitest-environment happy-dom
import { expect, test, vi } from "vitest";
import { newCanvas, settled } from "../../testing/canvas.tsx";
import { button } from "../../testing/stories.tsx";
import { choose, labelled, typed } from "../../testing/typing.ts";
import ApiKeysSection from "./api-keys.tsx";

const DAY_MS = 86_400_000;
const AT = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString();
const KEY = { id: "Ab12Cd34", user_id: "u1", name: "nightly", scopes: ["chat:read", "mcp:call"], created_at: AT(-40), expires_at: AT(49.5), last_used_at: null, revoked_at: null, is_from_setting: false };
const USED = { ...KEY, id: "Ef56Gh78", name: "laptop", scopes: [], last_used_at: AT(-0.1), expires_at: AT(2.5) };

const canvas = newCanvas();
let made: unknown[];

function serveAs(role: string, keys: readonly object[] = [KEY, USED]): void {
  made = [];
  vi.stubGlobal("fetch", async (request: Request): Promise<Response> => {
    if (request.method === "POST") {
      made.push(await request.json());
      return Response.json({ ...KEY, key: "pk_new" }, { status: 201 });
    }
    return Response.json(request.url.endsWith("/me") ? { id: "u1", role } : { items: keys });
  });
}

test("keys say in words what they may do, when they were used, and when they end", async () => {
  serveAs("member");
  await canvas.show(<ApiKeysSection />);
  await settled(() => expect(canvas.element.querySelectorAll("tbody tr")).toHaveLength(2));
  const rows = [...canvas.element.querySelectorAll("tbody tr")].map((row) => [...row.querySelectorAll("td")].map((cell) => cell.textContent));
  expect(rows[0]).toEqual(["nightlyBegins with pk_Ab12Cd34", "Read chats, Call tools of MCP servers", expect.any(String), "Never", "in 50 days ", "Revoke"]);
  expect(rows[1]).toEqual(["laptopBegins with pk_Ef56Gh78", "Everything that you may", expect.any(String), "2h ago In use", "in 3 days Soon", "Revoke"]);
});

test("the key of the installation has a name and cannot be revoked", async () => {
  serveAs("owner", [{ ...KEY, name: "", scopes: [], expires_at: null, is_from_setting: true }]);
  await canvas.show(<ApiKeysSection />);
  await settled(() => expect(canvas.element.querySelectorAll("tbody tr")).toHaveLength(1));
  expect(canvas.element.querySelector("tbody td")?.textContent).toBe("Key of the installationBegins with pk_Ab12Cd34");
  expect(button(canvas.element, "Revoke")).toBeUndefined();
});

test("a key is limited to chosen scopes, and scopes of administrators are offered to them alone", async () => {
  serveAs("member");
  await canvas.show(<ApiKeysSection />);
  await settled(() => expect(canvas.element.querySelectorAll("tbody tr")).toHaveLength(2));
  await typed(canvas.element.querySelector("input")!, "ci");
  await choose([...canvas.element.querySelectorAll("select")][1]!, "chosen");
  expect(button(canvas.element, "Make a key")!.disabled).toBe(true);
  expect(canvas.element.querySelector("fieldset")?.textContent).not.toContain("Administer");
  await canvas.press(labelled(canvas.element, "Read chats"));
  await canvas.press(labelled(canvas.element, "Upload files"));
  await canvas.press(button(canvas.element, "Make a key")!);
  await settled(() => expect(made).toEqual([{ name: "ci", lifetime_s: 7_776_000, scopes: ["chat:read", "file:write"] }]));
});

test("administrators may limit a key to the administration of one thing", async () => {
  serveAs("admin");
  await canvas.show(<ApiKeysSection />);
  await choose([...canvas.element.querySelectorAll("select")][1]!, "chosen");
  await settled(() => expect(canvas.element.querySelector("fieldset")?.textContent).toContain("Administer MCP servers"));
});
