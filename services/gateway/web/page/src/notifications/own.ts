/** Whether this browser is notified of the chats of the person who is signed in. */
import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";
import { Problem } from "../api/problem.ts";
import { me, queryClient } from "../api/queries.ts";
import { readStored, writeStored } from "../ui/stores/stored.ts";
import { deviceName, subscribe, type Subscribed, subscribedFor, unsubscribe } from "./device.ts";

export const STORED_KEY = "parley.notifications";

interface Kept {
  id: string;
  endpoint: string;
  /** Whose it is: another person may sign in here. */
  userId: string;
}

export const subscriptions = queryOptions({
  queryKey: ["me", "push-subscriptions"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/me/push-subscriptions", { signal })),
});

/** Return the subscription that this browser made for its person, if it made one. */
export function kept(): Kept | undefined {
  try {
    const { id, endpoint, userId } = JSON.parse(readStored(STORED_KEY) ?? "") as Partial<Kept>;
    return id && endpoint && userId ? { id, endpoint, userId } : undefined;
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
  const { id: userId } = await queryClient.ensureQueryData(me);
  writeStored(STORED_KEY, JSON.stringify({ id, endpoint: device.endpoint, userId }));
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
  if (kept()?.id === id) await giveUp();
  await again();
}

export async function sendTest(id: string): Promise<void> {
  const params = { path: { push_subscription_id: id } };
  await answered(api.POST("/api/v1/me/push-subscriptions/{push_subscription_id}/test", { params }));
  await again();
}

async function giveUp(): Promise<void> {
  writeStored(STORED_KEY, null);
  await unsubscribe();
}

/** Have this browser notify no more, before its person signs out. */
export async function forgetDevice(): Promise<void> {
  const present = kept();
  if (!present) return;
  // Here first: what the server still sends is not shown then.
  await giveUp();
  await remove(present.id);
}

/**
 * Tell the server if the browser replaced its subscription, or the server its key. A device of somebody else who
 * was signed in here, and one that was removed elsewhere, is given up.
 */
export async function renew(): Promise<void> {
  const before = kept();
  if (!before) return;
  if ((await queryClient.ensureQueryData(me)).id !== before.userId) return giveUp();
  if (Notification.permission !== "granted") return;
  const key = await publicKey();
  const present = await subscribedFor(key);
  if (present?.endpoint === before.endpoint) return;
  const { push_subscriptions: devices } = await answered(api.GET("/api/v1/me/push-subscriptions"));
  if (!devices.some((each) => each.id === before.id)) return giveUp();
  await store(present ?? (await subscribe(key)));
}
