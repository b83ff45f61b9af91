// @vitest-environment happy-dom
import { expect, test, vi } from "vitest";
import { newCanvas, settled } from "../../testing/canvas.tsx";
import { serve } from "../../testing/server.ts";
import { button } from "../../testing/stories.tsx";
import { labelled, typed } from "../../testing/typing.ts";
import ProvidersSection from "./section.tsx";

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
  await settled(() => expect(own.textContent).toContain("No chat can use it yet"));
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
  expect([...own.querySelectorAll(".key-list li")].map((each) => each.textContent?.replace("Forget", " "))).toEqual([
    "Ends with sk-…aaWorks ",
    "Ends with sk-…bbDoes not work It was refused.",
  ]);
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

test("a provider of which no key works says so, and shows no list of models", async () => {
  const refused = { model_names: [], keys: [{ key_id: "k1", works: false, problem: "The provider refused this key (401)." }] };
  serve({ "/api/v1/providers": { items: [{ ...PROVIDER, keys: KEYS.slice(0, 1) }, GIVEN], next_cursor: null }, "/api/v1/providers/p1/check": refused, "/api/v1/models": { items: [] } });
  const { own } = await shown();
  await canvas.press(button(own, "Check")!);
  await settled(() => expect(own.querySelector(".notice")?.textContent).toContain("Acme listed no models"));
  expect(own.querySelector(".key-list li .field-problem")?.textContent).toBe("The provider refused this key (401).");
  expect(own.textContent).not.toContain("It offers");
});

test("a new provider is checked at once, and its models are chosen where it is", async () => {
  const sent: [string, unknown][] = [];
  const stored: { id: string; provider_id: string; name: string; display_name: string; enabled: boolean; is_default: boolean }[] = [];
  const made: object[] = [];
  let keysRefused = 1;
  vi.stubGlobal("fetch", async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    if (request.method === "GET") return Response.json({ items: pathname === "/api/v1/models" ? stored : made, next_cursor: null });
    const body = await request.json();
    sent.push([pathname, body]);
    if (pathname === "/api/v1/providers") made.push({ ...PROVIDER, keys: [] });
    if (pathname === "/api/v1/provider-keys" && keysRefused-- > 0) {
      const errors = [{ code: "INVALID", pointer: "/key", detail: "It is too short." }];
      return Response.json({ title: "Invalid", status: 422, code: "INVALID_REQUEST", errors }, { status: 422 });
    }
    if (pathname === "/api/v1/models") stored.push({ id: body.name, provider_id: "p1", display_name: body.name, enabled: true, is_default: false, ...body });
    return Response.json(pathname.endsWith("/check") ? { ...CHECK, keys: [] } : PROVIDER);
  });
  await canvas.show(<ProvidersSection />);
  await settled(() => expect(canvas.element.textContent).toContain("No providers"));
  const [name, , key] = [...canvas.element.querySelectorAll("input")];
  await typed(name!, "acme");
  await typed(key!, "sk");
  await canvas.press(button(canvas.element, "Add the provider")!);
  await settled(() => expect(canvas.element.textContent).toContain("It is too short."));
  await typed(key!, "sk-long");
  await canvas.press(button(canvas.element, "Add the provider")!);
  await settled(() => expect(canvas.element.textContent).toContain("It offers 2 models"));
  await canvas.press(labelled(canvas.element, "small"));
  await canvas.press(button(canvas.element, "Add 1 model")!);
  await settled(() => expect(canvas.element.querySelector("[aria-label='Models of Acme']")?.textContent).toBe("smallDefault of new chats"));
  expect(sent.map(([path, body]) => [path, body])).toEqual([
    ["/api/v1/providers", { name: "acme", type: "anthropic" }],
    ["/api/v1/provider-keys", { provider_id: "p1", key: "sk" }],
    ["/api/v1/provider-keys", { provider_id: "p1", key: "sk-long" }],
    ["/api/v1/providers/p1/check", {}],
    ["/api/v1/models", { provider_id: "p1", name: "small", is_default: true }],
  ]);
});
