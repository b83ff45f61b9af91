// @vitest-environment happy-dom
import { expect, test, vi } from "vitest";
import { newCanvas, settled } from "../../testing/canvas.tsx";
import { button } from "../../testing/stories.tsx";
import { labelled } from "../../testing/typing.ts";
import SecretsSection from "./section.tsx";

const SECRET = { id: "s1", name: "deploy", description: "", owner_id: "u1", username: null, delivery: "git", hosts: ["github.com:443"], header: null, hint: null, created_at: null, last_used_at: null };
const SHARED = { ...SECRET, id: "s2", name: "registry", owner_id: null, delivery: "environment" };
const WORKSPACE = { id: "w1", name: "shop", owner_id: "u1", state: "stopped" };
const USE = { id: "x1", workspace_id: "w1", node_id: "n1", secret_name: "deploy", host: "github.com:443", purpose: "GET /", outcome: "given", used_at: null };

const canvas = newCanvas();

test("secrets are granted to a workspace where its uses are counted", async () => {
  let granted = ["deploy"];
  const sent: unknown[] = [];
  vi.stubGlobal("fetch", async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    if (request.method === "PUT") {
      const body: { secret_names: string[] } = await request.json();
      sent.push([pathname, body]);
      granted = body.secret_names;
    }
    const answers: Record<string, object> = {
      "/api/v1/me": { id: "u1", role: "member" },
      "/api/v1/secrets": { items: [SECRET, SHARED] },
      "/api/v1/secrets/uses": { items: [USE, { ...USE, id: "x2" }, { ...USE, id: "x3", outcome: "wrong_host" }] },
      "/api/v1/workspaces": { items: [WORKSPACE, { ...WORKSPACE, id: "w2", state: "deleted" }] },
      "/api/v1/workspaces/w1/grants": { items: granted.map((name) => ({ name })), next_cursor: null },
    };
    return Response.json(answers[pathname] ?? { items: [], next_cursor: null });
  });
  await canvas.show(<SecretsSection />);
  const rows = (): (string | null)[] => [...canvas.element.querySelectorAll("[aria-label='Secrets of workspaces'] tbody tr")].map((row) => row.textContent);
  await settled(() => expect(rows()).toEqual(["shopdeploy (used 2 times)Choose secrets"]));
  expect(canvas.element.textContent).toContain("Refused: none of its hosts");
  expect(canvas.element.textContent).not.toContain("wrong_host");
  await canvas.press(button(canvas.element, "Choose secrets of shop")!);
  const dialog = () => canvas.element.querySelector("dialog") ?? document.querySelector("dialog")!;
  expect(labelled(dialog(), "deploy").checked).toBe(true);
  await canvas.press(labelled(dialog(), "registry"));
  await canvas.press(button(dialog(), "Save")!);
  await settled(() => expect(rows()).toEqual(["shopdeploy (used 2 times), registryChoose secrets"]));
  expect(sent).toEqual([["/api/v1/workspaces/w1/grants", { secret_names: ["deploy", "registry"] }]]);
});
