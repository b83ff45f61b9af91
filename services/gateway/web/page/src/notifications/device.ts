/** This browser as a device that is notified: its permission and its subscription. */

const WORKER = "/service-worker.js";

/** What this browser can do, and whether it has a subscription. */
export type Standing = "insecure" | "unsupported" | "denied" | "unsubscribed" | "subscribed";

export interface Subscribed {
  endpoint: string;
  p256dh: string;
  auth: string;
}

interface ScriptPolicy {
  createScriptURL: (url: string) => unknown;
}

interface PolicyFactory {
  createPolicy: (name: string, rules: ScriptPolicy) => ScriptPolicy;
}

export class PermissionRefused extends Error {
  constructor() {
    super("The browser did not allow notifications of this site. Allow them in its settings, and try again.");
  }
}

let policy: ScriptPolicy | undefined;

/** Return the address of the worker, as the content policy wants it: from the one policy that it allows. */
function workerAddress(): string {
  const factory = (globalThis as { trustedTypes?: PolicyFactory }).trustedTypes;
  if (!factory) return WORKER;
  policy ??= factory.createPolicy("service-worker", { createScriptURL: () => WORKER });
  return policy.createScriptURL(WORKER) as string;
}

/** Return the bytes of a text in base64url. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const plain = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
  return Uint8Array.from(plain, (each) => each.charCodeAt(0));
}

async function present(): Promise<PushSubscription | null> {
  const registration = await navigator.serviceWorker.getRegistration("/");
  return (await registration?.pushManager.getSubscription()) ?? null;
}

export async function standing(): Promise<Standing> {
  if (!isSecureContext) return "insecure";
  if (!("serviceWorker" in navigator && "PushManager" in window && "Notification" in window)) return "unsupported";
  if (Notification.permission === "denied") return "denied";
  return (await present()) ? "subscribed" : "unsubscribed";
}

function isFor(subscription: PushSubscription, key: Uint8Array): boolean {
  const other = new Uint8Array(subscription.options.applicationServerKey ?? new ArrayBuffer());
  return other.length === key.length && other.every((each, index) => each === key[index]);
}

/**
 * Ask for the permission and subscribe at the push service of the browser. A subscription of before
 * is given up: it may belong to another person, or to another key of the server.
 */
export async function subscribe(publicKey: string): Promise<Subscribed> {
  if ((await Notification.requestPermission()) !== "granted") throw new PermissionRefused();
  await navigator.serviceWorker.register(workerAddress(), { scope: "/" });
  const { pushManager } = await navigator.serviceWorker.ready;
  await (await pushManager.getSubscription())?.unsubscribe();
  const key = bytesOf(publicKey);
  const subscription = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  return subscribedOf(subscription);
}

/** Return the present subscription if it is for this key of the server. */
export async function subscribedFor(publicKey: string): Promise<Subscribed | undefined> {
  const subscription = await present();
  return subscription && isFor(subscription, bytesOf(publicKey)) ? subscribedOf(subscription) : undefined;
}

function subscribedOf(subscription: PushSubscription): Subscribed {
  const { endpoint, keys } = subscription.toJSON();
  return { endpoint: endpoint ?? "", p256dh: keys?.["p256dh"] ?? "", auth: keys?.["auth"] ?? "" };
}

/** Give the subscription up at the push service; nothing that is sent to it arrives any more. */
export async function unsubscribe(): Promise<void> {
  await (await present())?.unsubscribe();
}

const SYSTEMS = ["iPhone", "iPad", "Android", "Windows", "Mac", "Linux"];
const BROWSERS = ["Edg", "OPR", "Firefox", "Chrome", "Safari"];
const NAMES: Readonly<Record<string, string>> = { Edg: "Edge", OPR: "Opera" };

/** Return what to call a browser in a list of devices. */
export function deviceName(userAgent: string): string {
  const browser = BROWSERS.find((each) => userAgent.includes(each)) ?? "Browser";
  const system = SYSTEMS.find((each) => userAgent.includes(each));
  return `${NAMES[browser] ?? browser}${system ? ` on ${system}` : ""}`;
}
