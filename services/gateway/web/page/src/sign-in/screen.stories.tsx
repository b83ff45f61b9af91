/** The ways to sign in in the component story format, each with what must hold in it. */
import { expect, vi } from "vitest";
import { settled } from "../testing/canvas.tsx";
import { button, type Story } from "../testing/stories.tsx";
import SignInScreen from "./screen.tsx";

const WRONG = { type: "about:blank", title: "Refused", status: 401, detail: "This login and password do not fit.", instance: "", code: "UNAUTHENTICATED", retryable: false };
const ISSUERS = { issuers: [{ name: "acme", display_name: "Acme", path: "/api/v1/sign-in/oidc/acme" }] };

/** What was sent, by path, and where the page went. */
let sent: [string, unknown][] = [];
let gone: string[] = [];

/** Be at an address, with a server that answers these paths. */
function at(address: string, answers: Record<string, () => Response>): () => void {
  return () => {
    [sent, gone] = [[], []];
    history.replaceState(null, "", address);
    vi.spyOn(location, "assign").mockImplementation((to) => void gone.push(String(to)));
    vi.stubGlobal("fetch", async (request: Request): Promise<Response> => {
      const { pathname } = new URL(request.url);
      if (request.method === "POST") sent.push([pathname, await request.json()]);
      return answers[pathname]?.() ?? Response.json({ issuers: [] });
    });
  };
}

function type(canvas: HTMLElement, name: string, text: string): void {
  canvas.querySelector<HTMLInputElement>(`input[name=${name}]`)!.value = text;
}

async function leftFor(address: string): Promise<void> {
  await settled(() => expect(gone).toEqual([address]));
  vi.restoreAllMocks();
}

async function signIn(canvas: HTMLElement, press: (element: Element) => Promise<void>): Promise<void> {
  type(canvas, "login", "ada");
  type(canvas, "password", "nine green pens");
  await press(button(canvas, "Sign in")!);
}

/** A password leads to the start. */
export const Password: Story = {
  before: at("/sign-in", { "/api/v1/sign-in": () => Response.json({ continuation: null }) }),
  render: () => <SignInScreen />,
  async play(canvas, press) {
    await signIn(canvas, press);
    await leftFor("/");
    expect(sent).toEqual([["/api/v1/sign-in", { login: "ada", password: "nine green pens" }]]);
  },
};

/** A session that ended leads back to where it was, and says that nothing is lost. */
export const BackAgain: Story = {
  before: at("/sign-in?to=%2Fchats%2Fc1%23m17", { "/api/v1/sign-in": () => Response.json({ continuation: null }) }),
  render: () => <SignInScreen />,
  async play(canvas, press) {
    expect(canvas.textContent).toContain("What you had written is still there.");
    await signIn(canvas, press);
    await leftFor("/chats/c1#m17");
  },
};

/** What is refused says why, and the login stays typed. */
export const Refused: Story = {
  before: at("/sign-in", { "/api/v1/sign-in": () => Response.json(WRONG, { status: 401 }) }),
  render: () => <SignInScreen />,
  async play(canvas, press) {
    await signIn(canvas, press);
    await settled(() => expect(canvas.querySelector("[role=alert]")?.textContent).toContain("do not fit"));
    expect([canvas.querySelector<HTMLInputElement>("input[name=login]")?.value, gone]).toEqual(["ada", []]);
    vi.restoreAllMocks();
  },
};

/** A second factor is asked for after the password, and goes with what the password began. */
export const SecondFactor: Story = {
  before: at("/sign-in", {
    "/api/v1/sign-in": () => Response.json({ continuation: "begun" }),
    "/api/v1/sign-in/second-factor": () => Response.json({}),
  }),
  render: () => <SignInScreen />,
  async play(canvas, press) {
    await signIn(canvas, press);
    await settled(() => expect(canvas.querySelector("input[name=code]")).not.toBeNull());
    expect(button(canvas, "Use a passkey")).toBeUndefined();
    type(canvas, "code", "123456");
    await press(button(canvas, "Go on")!);
    await leftFor("/");
    expect(sent.at(-1)).toEqual(["/api/v1/sign-in/second-factor", { continuation: "begun", code: "123456" }]);
  },
};

/** Identity providers are links, and the address to come back to is remembered over them. */
export const IdentityProvider: Story = {
  before: at("/sign-in?to=%2Fsettings", { "/api/v1/configuration": () => Response.json(ISSUERS) }),
  render: () => <SignInScreen />,
  async play(canvas) {
    await settled(() => expect(canvas.querySelector("a.button")?.textContent).toBe("Sign in with Acme"));
    const link = canvas.querySelector<HTMLAnchorElement>("a.button")!;
    expect(link.getAttribute("href")).toBe("/api/v1/sign-in/oidc/acme");
    link.addEventListener("click", (event) => event.preventDefault());
    link.click();
    expect(sessionStorage.getItem("parley.return")).toBe("/settings");
    sessionStorage.clear();
    vi.restoreAllMocks();
  },
};

/** A passkey of the device answers what the server asks. */
export const Passkey: Story = {
  before: () => {
    at("/sign-in", { "/api/v1/sign-in/passkey/options": () => Response.json({ continuation: "begun", options: { challenge: "abc" } }), "/api/v1/sign-in/passkey": () => Response.json({}) })();
    vi.stubGlobal("PublicKeyCredential", { parseRequestOptionsFromJSON: (given: object) => given });
    const get = async ({ publicKey }: { publicKey: object }): Promise<object> => ({ toJSON: () => ({ answers: publicKey }) });
    vi.stubGlobal("navigator", new Proxy(navigator, { get: (was, name) => (name === "credentials" ? { get } : Reflect.get(was, name)) }));
  },
  render: () => <SignInScreen />,
  async play(canvas, press) {
    await press(button(canvas, "Use a passkey")!);
    await leftFor("/");
    expect(sent.at(-1)).toEqual(["/api/v1/sign-in/passkey", { continuation: "begun", credential: { answers: { challenge: "abc" } } }]);
  },
};

/** A browser without passkeys offers none. */
export const WithoutPasskeys: Story = {
  before: () => {
    at("/sign-in", {})();
    Reflect.deleteProperty(window, "PublicKeyCredential");
  },
  render: () => <SignInScreen />,
  async play(canvas) {
    expect(button(canvas, "Use a passkey")).toBeUndefined();
    vi.restoreAllMocks();
  },
};
