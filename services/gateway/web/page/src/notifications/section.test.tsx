// @vitest-environment happy-dom
import { act } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { newCanvas, settled } from "../testing/canvas.tsx";
import { button } from "../testing/stories.tsx";
import { deviceName } from "./device.ts";
import { queryClient } from "../api/queries.ts";
import { forgetDevice, renew, STORED_KEY, turnOn } from "./own.ts";
import NotificationsSection from "./section.tsx";

const KEY = "BA".padEnd(87, "A");
const OTHER_KEY = "BB".padEnd(87, "A");
const DEVICE = { id: "d1", name: "Firefox on Linux", host: "push.example", created_at: "2026-01-01T00:00:00Z", last_sent_at: null, last_error: null };

/** What the browser does with subscriptions: each new one has another endpoint. */
class PushManager {
  made = 0;
  present: { endpoint: string; key: Uint8Array } | undefined;

  async getSubscription() {
    const { present } = this;
    if (!present) return null;
    return {
      options: { applicationServerKey: present.key.buffer },
      toJSON: () => ({ endpoint: present.endpoint, keys: { p256dh: "P", auth: "A" } }),
      unsubscribe: async () => (this.present = undefined),
    };
  }

  async subscribe({ applicationServerKey }: { applicationServerKey: Uint8Array }) {
    this.made += 1;
    this.present = { endpoint: `https://push.example/${this.made}`, key: applicationServerKey };
    return (await this.getSubscription())!;
  }
}

let pushManager: PushManager;
let permission: NotificationPermission;
let answer: NotificationPermission;
let key: string;
let userId: string;
let devices: (typeof DEVICE)[];
let stored: { endpoint: string }[];

const canvas = newCanvas();
const box = () => canvas.element.querySelector<HTMLInputElement>("input[name=notifications]");
const words = () => canvas.element.textContent ?? "";

beforeEach(() => {
  pushManager = new PushManager();
  [permission, answer, key, userId, devices, stored] = ["default", "granted", KEY, "ada", [], []];
  const registration = { pushManager };
  vi.stubGlobal("isSecureContext", true);
  vi.stubGlobal("PushManager", PushManager);
  vi.stubGlobal("Notification", {
    get permission() {
      return permission;
    },
    requestPermission: async () => (permission = answer),
  });
  Object.defineProperty(navigator, "serviceWorker", {
    configurable: true,
    value: { ready: registration, getRegistration: async () => registration, register: async () => registration },
  });
  vi.stubGlobal("fetch", async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    if (pathname === "/api/v1/me") return Response.json({ id: userId });
    if (pathname === "/api/v1/push-key") return Response.json({ public_key: key });
    if (request.method === "POST" && pathname.endsWith("/push-subscriptions")) {
      stored.push((await request.json()) as { endpoint: string });
      devices = [DEVICE];
      return Response.json(DEVICE, { status: 201 });
    }
    if (request.method === "POST") {
      devices = [{ ...DEVICE, last_sent_at: "2026-01-02T00:00:00Z" }] as unknown as typeof devices;
      return new Response(null, { status: 204 });
    }
    if (request.method === "DELETE") {
      const found = devices.length > 0;
      devices = [];
      return found ? new Response(null, { status: 204 }) : Response.json({ type: "about:blank", title: "", status: 404, detail: "", instance: "", code: "RESOURCE_NOT_FOUND", retryable: false }, { status: 404 });
    }
    return Response.json({ push_subscriptions: devices });
  });
});

afterEach(() => {
  Reflect.deleteProperty(navigator, "serviceWorker");
  localStorage.clear();
});

async function shown(): Promise<void> {
  await canvas.show(<NotificationsSection />);
  await settled(() => expect(words()).toMatch(/No devices|Firefox on Linux/));
}

test("a browser that cannot notify says why, and offers nothing", async () => {
  permission = "denied";
  await shown();
  await settled(() => expect(words()).toContain("Notifications of this site are blocked."));
  expect(box()).toBeNull();
});

test("without HTTPS the page says what it needs", async () => {
  vi.stubGlobal("isSecureContext", false);
  await shown();
  await settled(() => expect(words()).toContain("HTTPS only"));
  expect(box()).toBeNull();
});

test("a device is turned on, tested, and turned off", async () => {
  await shown();
  await settled(() => expect(box()?.checked).toBe(false));
  await canvas.press(box()!);
  await settled(() => expect(box()?.checked).toBe(true));
  expect(stored).toEqual([{ endpoint: "https://push.example/1", p256dh: "P", auth: "A", name: deviceName(navigator.userAgent) }]);
  expect(words()).toContain("never");
  await canvas.press(button(canvas.element, "Send a test")!);
  await settled(() => expect(words()).not.toContain("never"));
  await canvas.press(box()!);
  await settled(() => expect(words()).toContain("No devices"));
  expect([box()?.checked, pushManager.present, localStorage.getItem(STORED_KEY)]).toEqual([false, undefined, null]);
});

test("a permission that is refused is told, and nothing is stored", async () => {
  answer = "denied";
  await shown();
  await settled(() => expect(box()).not.toBeNull());
  await canvas.press(box()!);
  await settled(() => expect(words()).toContain("did not allow notifications"));
  expect([stored, pushManager.made]).toEqual([[], 0]);
});

test("the subscription of another person in this browser is none, and is given up for a new one", async () => {
  await pushManager.subscribe({ applicationServerKey: new Uint8Array(65) });
  await shown();
  await settled(() => expect(box()?.checked).toBe(false));
  await canvas.press(box()!);
  await settled(() => expect(box()?.checked).toBe(true));
  expect(stored.map(({ endpoint }) => endpoint)).toEqual(["https://push.example/2"]);
});

test("a subscription that the browser or the key of the server replaced is told to the server once", async () => {
  await shown();
  await settled(() => expect(box()).not.toBeNull());
  await canvas.press(box()!);
  await settled(() => expect(box()?.checked).toBe(true));
  await act(renew);
  expect(stored.length).toBe(1);
  key = OTHER_KEY;
  await act(renew);
  await act(renew);
  expect(stored.map(({ endpoint }) => endpoint)).toEqual(["https://push.example/1", "https://push.example/2"]);
});

test("a subscription of somebody else, or that was removed elsewhere, is given up and not renewed", async () => {
  for (const change of [() => (userId = "bob"), () => (devices = [])]) {
    userId = "ada";
    queryClient.clear();
    await act(turnOn);
    change();
    key = key === KEY ? OTHER_KEY : KEY;
    queryClient.clear();
    stored = [];
    await act(renew);
    expect([stored, pushManager.present, localStorage.getItem(STORED_KEY)]).toEqual([[], undefined, null]);
  }
});

test("signing out gives the subscription up here also if the server is away", async () => {
  await act(turnOn);
  vi.stubGlobal("fetch", async () => Response.json({}, { status: 500 }));
  await act(() => forgetDevice().catch(() => {}));
  expect([pushManager.present, localStorage.getItem(STORED_KEY)]).toEqual([undefined, null]);
});

test("a device that was removed elsewhere is given up here too", async () => {
  await shown();
  await settled(() => expect(box()).not.toBeNull());
  await canvas.press(box()!);
  await settled(() => expect(box()?.checked).toBe(true));
  devices = [];
  await canvas.press(box()!);
  await settled(() => expect(box()?.checked).toBe(false));
  expect(pushManager.present).toBeUndefined();
});

test("devices are named by their browser and system", () => {
  const agents = [
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/150 Safari/537.36",
    "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/150 Safari/537.36 Edg/150",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605 Version/19 Safari/604",
    "Mozilla/5.0 (Android 16; Mobile; rv:150.0) Gecko/150.0 Firefox/150.0",
    "curl/8",
  ];
  expect(agents.map(deviceName)).toEqual(["Chrome on Linux", "Edge on Windows", "Safari on iPhone", "Firefox on Android", "Browser"]);
});
