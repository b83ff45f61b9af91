/** Whether this browser is notified of the chats of the person who is signed in. */
import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";
import { Problem } from "../api/problem.ts";
import { queryClient } from "../api/queries.ts";
import { readStored, writeStored } from "../ui/stored.ts";
import { deviceName, subscribe, type Subscribed, subscribedFor, unsubscribe } from "./device.ts";

export const STORED_KEY = "parley.notifications";

interface Kept {
  id: string;
  endpoint: string;
}

export const subscriptions = queryOptions({
  queryKey: ["me", "push-subscriptions"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/me/push-subscriptions", { signal })),
});

/** Return the subscription that this browser made for its person, if it made one. */
export function kept(): Kept | undefined {
  try {
    const { id, endpoint } = JSON.parse(readStored(STORED_KEY) ?? "") as Partial<Kept>;
    return id && endpoint ? { id, endpoint } : undefined;
  } catch {
    return undefined;
  }
}

async function publicKey(): Promise<string> {
  return (await answered(api.GET("/api/v1/push-key"))).public_key;
}

async function store(device: Subscribed): Promise<void> {
  const body = { ...device, name: deviceName(navigator.userAgent) };
  const { id } = await answered(api.POST("/api/v1/me/push-subscriptions", { body }));
  writeStored(STORED_KEY, JSON.stringify({ id, endpoint: device.endpoint }));
}

const again = (): Promise<void> => queryClient.invalidateQueries({ queryKey: subscriptions.queryKey });

export async function turnOn(): Promise<void> {
  await store(await subscribe(await publicKey()));
  await again();
}

export async function remove(id: string): Promise<void> {
  const params = { path: { push_subscription_id: id } };
  try {
    await answered(api.DELETE("/api/v1/me/push-subscriptions/{push_subscription_id}", { params }));
  } catch (error) {
    // Removed elsewhere, or by the server because the push service no longer knows it.
    if (!(error instanceof Problem && error.status === 404)) throw error;
  }
  if (kept()?.id === id) {
    writeStored(STORED_KEY, null);
    await unsubscribe();
  }
  await again();
}

export async function sendTest(id: string): Promise<void> {
  const params = { path: { push_subscription_id: id } };
  await answered(api.POST("/api/v1/me/push-subscriptions/{push_subscription_id}/test", { params }));
  await again();
}

/** Have this browser notify no more, before its person signs out. */
export async function forgetDevice(): Promise<void> {
  const present = kept();
  if (present) await remove(present.id);
}

/** Tell the server if the browser replaced its subscription, or the server its key. */
export async function renew(): Promise<void> {
  const before = kept();
  if (!before || Notification.permission !== "granted") return;
  const key = await publicKey();
  const present = await subscribedFor(key);
  if (present?.endpoint === before.endpoint) return;
  await store(present ?? (await subscribe(key)));
}
