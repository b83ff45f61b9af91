// @vitest-environment happy-dom
import { expect, test, vi } from "vitest";
import { newCanvas, settled } from "../testing/canvas.tsx";
import { button } from "../testing/stories.tsx";
import ProvidersSection from "./providers.tsx";

const KEYS = [{ id: "k1", hint: "sk-…aa" }, { id: "k2", hint: "sk-…bb" }];
const PROVIDER = { id: "p1", name: "acme", display_name: "Acme", type: "anthropic", base_url: null, enabled: true, user_keys_allowed: false, keys: KEYS, from_environment: false, etag: "7" };
const GIVEN = { ...PROVIDER, id: "p2", display_name: "Given", from_environment: true };
const CHECK = { model_names: ["large", "small"], keys: [{ key_id: "k1", works: true, problem: null }, { key_id: "k2", works: false, problem: "It was refused." }] };

const canvas = newCanvas();

async function shown(): Promise<Record<"own" | "given", HTMLElement>> {
  await canvas.show(<ProvidersSection />);
  await settled(() => expect(canvas.element.querySelectorAll("section")).toHaveLength(2));
  const [own, given] = [...canvas.element.querySelectorAll<HTMLElement>("section")];
  return { own: own!, given: given! };
}

test("a provider of the environment says so and is read-only, and one of the page is changed over what was read", async () => {
  const changes: [string, string | null, unknown][] = [];
  vi.stubGlobal("fetch", async (request: Request): Promise<Response> => {
    if (request.method === "PATCH") changes.push([new URL(request.url).pathname, request.headers.get("If-Match"), await request.json()]);
    return Response.json({ items: [PROVIDER, GIVEN], next_cursor: null });
  });
  const { own, given } = await shown();
  expect(given.textContent).toContain("From the environment, read-only");
  expect([...given.querySelectorAll<HTMLInputElement>("input")].map((each) => each.disabled)).toEqual([true, true]);
  expect([...given.querySelectorAll("button")].map((each) => each.textContent)).toEqual(["Check"]);
  expect(own.textContent).not.toContain("From the environment");
  await canvas.press(own.querySelector("input")!);
  await settled(() => expect(changes).toEqual([["/api/v1/providers/p1", '"7"', { enabled: false }]]));
});

test("a check says which models there are and which keys work, in the order of their use", async () => {
  vi.stubGlobal("fetch", async (request: Request): Promise<Response> =>
    Response.json(request.url.endsWith("/check") ? CHECK : { items: [PROVIDER, GIVEN], next_cursor: null }));
  const { own } = await shown();
  await canvas.press(button(own, "Check")!);
  await settled(() => expect(own.textContent).toContain("It offers 2 models"));
  expect([...own.querySelectorAll(".key-list li")].map((each) => each.textContent?.replace("Forget", ""))).toEqual(["sk-…aaworks", "sk-…bbIt was refused."]);
});

test("an order is stored over the version of the order before, and one that is refused is taken back", async () => {
  const orders: [string | null, unknown][] = [];
  let isRefused = false;
  vi.stubGlobal("fetch", async (request: Request): Promise<Response> => {
    if (request.method !== "PUT") return Response.json({ items: [PROVIDER, GIVEN], next_cursor: null });
    const body: { key_ids: string[] } = await request.json();
    orders.push([request.headers.get("If-Match"), body]);
    if (isRefused) return Response.json({ title: "Changed", status: 412, code: "VERSION_CONFLICT" }, { status: 412 });
    const keys = body.key_ids.map((id) => KEYS.find((each) => each.id === id));
    return Response.json({ ...PROVIDER, keys, etag: `${7 + orders.length}` });
  });
  const { own, given } = await shown();
  const hints = () => [...own.querySelectorAll(".key-list code")].map((each) => each.textContent);
  expect(given.querySelectorAll(".key-list .icon-button")).toHaveLength(0);
  await canvas.press(own.querySelector('[aria-label="Try sk-…aa later"]')!);
  await settled(() => expect(hints()).toEqual(["sk-…bb", "sk-…aa"]));
  await canvas.press(own.querySelector('[aria-label="Try sk-…aa later"]')!);
  await canvas.press(own.querySelector('[aria-label="Try sk-…aa earlier"]')!);
  await settled(() => expect(hints()).toEqual(["sk-…aa", "sk-…bb"]));
  await settled(() => expect(orders).toEqual([['"7"', { key_ids: ["k2", "k1"] }], ['"8"', { key_ids: ["k1", "k2"] }]]));
  isRefused = true;
  await canvas.press(own.querySelector('[aria-label="Try sk-…bb earlier"]')!);
  await settled(() => expect(orders).toHaveLength(3));
  await settled(() => expect(hints()).toEqual(["sk-…aa", "sk-…bb"]));
});
