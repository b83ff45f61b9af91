/** The message that the address of a chat names. */
import { type RefObject, useEffect, useState } from "react";
import type { ChatStore } from "../../stream/chat-store.ts";
import { complain } from "../../ui/toasts.tsx";
import type { Following } from "./following.ts";
import type { Place } from "./held-place.ts";

/** Go to the message that the address names, or to the one before it if it has no row. */
export function useLinkedMessage(store: ChatStore, isLoaded: boolean, following: RefObject<Following>, content: Place): void {
  // Set when the message was read. React renders the messages before it, so the row is there then.
  const [target, setTarget] = useState<{ id: number } | null>(null);
  useEffect(() => {
    if (!isLoaded) return;
    async function go(): Promise<void> {
      const id = Number(/^#m(\d+)$/.exec(location.hash)?.[1]);
      if (!id) return;
      following.current.isOn = false;
      following.current.isSeeking = true;
      try {
        await store.reach(id);
        setTarget({ id });
      } catch (error) {
        following.current.isSeeking = false;
        throw error;
      }
    }
    const onHash = (): void => void go().catch(complain);
    onHash();
    addEventListener("hashchange", onHash);
    return () => removeEventListener("hashchange", onHash);
  }, [store, isLoaded, following]);
  useEffect(() => {
    if (!target) return;
    const rows = [...(content.current?.querySelectorAll<HTMLElement>("article[id^=m]") ?? [])];
    const row = rows.findLast((each) => Number(each.id.slice(1)) <= target.id) ?? rows[0];
    following.current.isOn = false;
    following.current.isSeeking = false;
    row?.scrollIntoView({ block: "start" });
    row?.classList.add("is-target");
  }, [target, following, content]);
}
