/**
 * Shows what the server pushes while no page is open. It caches nothing and answers no requests.
 * It is a script of its own: nothing of it is shared with the page.
 */
import { isWatched, pushedOf, shownAs, windowFor } from "./notice.ts";

interface WindowClient {
  readonly url: string;
  readonly focused: boolean;
  focus: () => Promise<WindowClient>;
  navigate: (url: string) => Promise<WindowClient | null>;
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

const windows = (): Promise<WindowClient[]> => worker.clients.matchAll({ type: "window", includeUncontrolled: true });

async function show(text: string): Promise<void> {
  const pushed = pushedOf(text);
  if (!pushed || isWatched(pushed.path, await windows())) return;
  await worker.registration.showNotification(pushed.title, shownAs(pushed));
}

async function open(path: string): Promise<void> {
  const all = await windows();
  const found = all[windowFor(path, all)];
  if (!found) {
    await worker.clients.openWindow(path);
    return;
  }
  const focused = await found.focus();
  if (new URL(focused.url).pathname !== path) await focused.navigate(path);
}

worker.addEventListener("install", (event) => event.waitUntil(worker.skipWaiting()));
worker.addEventListener("activate", (event) => event.waitUntil(worker.clients.claim()));
worker.addEventListener("push", (event) => event.waitUntil(show(event.data?.text() ?? "")));
worker.addEventListener("notificationclick", (event) => {
  const { path } = (event.notification?.data ?? { path: "/" }) as { path: string };
  event.notification?.close();
  event.waitUntil(open(path));
});
