/**
 * Shows what the server pushes while no page is open. It caches nothing and answers no requests.
 * It is a script of its own: nothing of it is shared with the page.
 */
import { isWatched, pushedOf, shownAs, windowAt } from "./notice.ts";

interface WindowClient {
  readonly url: string;
  readonly focused: boolean;
  readonly frameType: string;
  focus: () => Promise<WindowClient>;
}

interface WorkerEvent extends Event {
  readonly data?: { text: () => string } | null;
  readonly notification?: Notification;
  waitUntil: (until: Promise<unknown>) => void;
}

interface Worker {
  readonly registration: ServiceWorkerRegistration;
  readonly clients: {
    claim: () => Promise<void>;
    matchAll: (options: { type: "window"; includeUncontrolled: boolean }) => Promise<WindowClient[]>;
    openWindow: (url: string) => Promise<WindowClient | null>;
  };
  skipWaiting: () => Promise<void>;
  addEventListener: (kind: string, handle: (event: WorkerEvent) => void) => void;
}

const worker = globalThis as unknown as Worker;

/** Return the windows of this site without what they frame, such as terminals. */
async function windows(): Promise<WindowClient[]> {
  const all = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
  return all.filter((each) => each.frameType === "top-level");
}

async function show(text: string): Promise<void> {
  const pushed = pushedOf(text);
  if (!pushed || isWatched(pushed.path, await windows())) return;
  await worker.registration.showNotification(pushed.title, shownAs(pushed));
}

async function open(path: string): Promise<void> {
  const found = windowAt(path, await windows());
  await (found ? found.focus() : worker.clients.openWindow(path));
}

worker.addEventListener("install", (event) => event.waitUntil(worker.skipWaiting()));
worker.addEventListener("activate", (event) => event.waitUntil(worker.clients.claim()));
worker.addEventListener("push", (event) => event.waitUntil(show(event.data?.text() ?? "")));
worker.addEventListener("notificationclick", (event) => {
  const { path } = (event.notification?.data ?? { path: "/" }) as { path: string };
  event.notification?.close();
  event.waitUntil(open(path));
});
