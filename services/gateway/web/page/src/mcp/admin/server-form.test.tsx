// @vitest-environment happy-dom
import { expect, test, vi } from "vitest";
import { newCanvas, settled } from "../../testing/canvas.tsx";
import { button } from "../../testing/stories.tsx";
import { choose, typed } from "../../testing/typing.ts";
import { ServerForm } from "./server-form.tsx";

const canvas = newCanvas();
let sent: [string, Record<string, unknown>][];

function answerWith(answer: () => Response): void {
  sent = [];
  vi.stubGlobal("fetch", async (request: Request): Promise<Response> => {
    if (request.method !== "POST") return Response.json({ items: [], next_cursor: null });
    sent.push([new URL(request.url).pathname, await request.json()]);
    return answer();
  });
}

/** Return the field with a label. */
function field(label: string): HTMLElement {
  const found = [...canvas.element.querySelectorAll("label")].find((each) => each.textContent === label)!;
  return document.getElementById(found.htmlFor)!;
}

function saidAt(label: string): string | null | undefined {
  return field(label).parentElement?.querySelector("[role=alert]")?.textContent;
}

test("a test of the connection says in words what failed and what to do", async () => {
  const failed = { kind: "connect", duration_ms: 3, reason: "connect_failed", detail: "refused" };
  answerWith(() => Response.json({ state: "unavailable", phases: [{ ...failed, kind: "resolve", reason: null, detail: "" }, failed], protocol_version: null, tool_names: [] }));
  await canvas.show(<ServerForm onDone={() => {}} />);
  await typed(field("Address"), "https://mcp.example.org/mcp");
  await canvas.press(button(canvas.element, "Test the connection")!);
  await settled(() => expect(canvas.element.querySelector("[aria-label='Phases of the contact']")?.textContent).toContain("It cannot be reached"));
  expect(canvas.element.textContent).toContain("Check the address, and whether this machine reaches it.");
  expect(canvas.element.textContent).not.toContain("connect_failed");
  expect(sent.map(([path]) => path)).toEqual(["/api/v1/mcp/probe"]);
});

test("the short name follows the name until it is written, and the settings of OAuth are sent", async () => {
  answerWith(() => Response.json({ id: "s1" }, { status: 201 }));
  await canvas.show(<ServerForm onDone={() => {}} />);
  await typed(field("Name"), "Issue tracker (new)");
  expect((field("Short name") as HTMLInputElement).value).toBe("issue-tracker-new");
  await typed(field("Short name"), "issues");
  await typed(field("Name"), "Tracker");
  expect((field("Short name") as HTMLInputElement).value).toBe("issues");
  await typed(field("Address"), "https://mcp.example.org/mcp");
  await choose(field("Authorized by"), "oauth2");
  await typed(field("Scopes"), "read  write");
  await canvas.press(button(canvas.element, "Add the server")!);
  await settled(() => expect(sent).toHaveLength(1));
  const { slug, is_enabled, oauth } = sent[0]![1];
  const empty = { client_id: "", issuer: "", authorization_url: "", token_url: "", revocation_url: "" };
  expect({ slug, is_enabled, oauth }).toEqual({ slug: "issues", is_enabled: true, oauth: { ...empty, scopes: ["read", "write"] } });
});

test("each field says what is wrong with it, also one that was folded away", async () => {
  const errors = [
    { code: "INVALID", pointer: "/slug", detail: "It is taken." },
    { code: "INVALID", pointer: "/oauth/token_url", detail: "It is not https." },
    { code: "INVALID", pointer: "/oauth/scopes/0", detail: "It has a quote." },
  ];
  answerWith(() => Response.json({ title: "Invalid", status: 422, detail: "Invalid.", code: "INVALID_REQUEST", errors }, { status: 422 }));
  await canvas.show(<ServerForm onDone={() => {}} />);
  await typed(field("Name"), "Tracker");
  await typed(field("Address"), "https://mcp.example.org/mcp");
  await choose(field("Authorized by"), "oauth2");
  expect(canvas.element.querySelector("details")!.open).toBe(false);
  await canvas.press(button(canvas.element, "Test the connection")!);
  await settled(() => expect(saidAt("Short name")).toBe("It is taken."));
  expect([saidAt("Where tokens are given"), saidAt("Scopes")]).toEqual(["It is not https.", "It has a quote."]);
  expect(canvas.element.querySelector("details")!.open).toBe(true);
});
