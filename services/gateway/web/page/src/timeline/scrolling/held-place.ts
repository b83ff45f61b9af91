/** What is read stays where it is while other messages come in above it. */
import { type RefObject, useEffect, useLayoutEffect, useRef } from "react";
import { afterGap, type ChatState } from "../../stream/chat-state.ts";
import type { ChatStore } from "../../stream/chat-store.ts";
import { type Following, isFollowed } from "./following.ts";

export type Place = RefObject<HTMLDivElement | null>;

/** Return what changes when messages come in above the newest one. */
export function shapeOf(chat: ChatState): string {
  return `${chat.messages[0]?.id}:${chat.gapAfter}:${chat.messages[afterGap(chat)]?.id}`;
}

/** Return the groups of messages, in order. */
export function groupsIn(content: Element): Element[] {
  return [...content.getElementsByClassName("timeline-group")];
}

/**
 * Return the first message that ends below an edge. Groups are looked at before their messages:
 * asking where a message is in a group that is left out has the browser lay out all of that group.
 */
export function firstShown(content: Element, edge: number): Element | undefined {
  const isShown = (each: Element): boolean => each.getBoundingClientRect().bottom > edge;
  const group = groupsIn(content).find(isShown);
  return group && [...group.getElementsByTagName("article")].find(isShown);
}

/** Keep what is read where it is when other messages come in; at the end that is the end. */
export function useHeldPlace(store: ChatStore, shape: string, scroller: Place, content: Place, following: RefObject<Following>): void {
  const held = useRef<"end" | { element: Element; top: number } | null>(null);

  useLayoutEffect(() => {
    const place = held.current;
    held.current = null;
    if (!scroller.current) return;
    if (place === "end") {
      // All messages may be others, as when a revert is undone: what was shown is far from the end then.
      scroller.current.scrollTop = scroller.current.scrollHeight;
      following.current.top = scroller.current.scrollTop;
      return;
    }
    if (!place?.element.isConnected) return;
    const moved = place.element.getBoundingClientRect().top - place.top;
    if (moved) scroller.current.scrollTop += moved;
  }, [shape, scroller, following]);

  // Note where the first visible message is, right before the page that changes it is shown.
  useEffect(
    () =>
      store.view.subscribe(() => {
        if (shapeOf(store.view.get().chat) === shape || !content.current) return;
        if (scroller.current && isFollowed(following.current, scroller.current)) {
          held.current = "end";
          return;
        }
        const edge = scroller.current?.getBoundingClientRect().top ?? 0;
        const shown = firstShown(content.current, edge);
        if (shown) held.current = { element: shown, top: shown.getBoundingClientRect().top };
      }),
    [store, shape, scroller, content, following],
  );
}
