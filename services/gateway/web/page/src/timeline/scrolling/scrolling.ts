/** Where the reader of a chat is, and how that place is kept while messages come in around it. */
import { type RefObject, useCallback, useEffect, useRef, useState } from "react";
import type { ChatStore, ChatView } from "../../stream/chat-store.ts";
import { JUMP } from "../../shell/keys.ts";
import { complain } from "../../ui/toasts.tsx";
import { type Following, isFollowed, isNearEnd } from "./following.ts";
import { groupsIn, type Place, shapeOf, useHeldPlace } from "./held-place.ts";
import { useLinkedMessage } from "./linked-message.ts";

const NEAR_EDGE = 400;
/** Messages that are jumped to begin so far below the edge. */
const JUMP_MARGIN = 16;

export interface Scrolling {
  isAtEnd: boolean;
  onScroll: () => void;
  loadOlder: () => void;
  fillGap: (side: "older" | "newer") => void;
  toLatest: () => void;
  /** Go to the person's own message before what is shown, or to the one after. */
  jump: (by: 1 | -1) => void;
}

export function useScrolling(store: ChatStore, view: ChatView, scroller: Place, content: Place): Scrolling {
  const { chat } = view;
  const [isAtEnd, setAtEnd] = useState(true);
  const following = useRef<Following>({ isOn: true, top: 0, isSeeking: false });
  const shape = shapeOf(chat);

  const loadOlder = (): void => void (chat.hasOlder && store.loadOlder().catch(complain));
  const fillGap = useCallback(
    (side: "older" | "newer"): void => void store.fillGap(side).catch(complain),
    [store],
  );

  useFollowing(scroller, content, following);
  useHeldPlace(store, shape, scroller, content, following);
  useLinkedMessage(store, view.isLoaded, following, content);
  useEffect(() => {
    // A chat that does not fill its place reads on until it does.
    const element = scroller.current;
    if (chat.hasOlder && view.isLoaded && element && element.scrollHeight <= element.clientHeight) loadOlder();
    // Not with each piece of an answer: looking at the height lays the page out.
  }, [chat.messages, chat.hasOlder, view.isLoaded]);
  useEffect(() => {
    fillNear();
    // A page that came in may not have filled what is shown.
  }, [shape]);

  function onScroll(): void {
    const element = scroller.current;
    if (!element) return;
    const isNear = isNearEnd(element);
    following.current.isOn = isNear && !following.current.isSeeking;
    following.current.top = element.scrollTop;
    setAtEnd(isNear);
    if (following.current.isSeeking) return;
    if (element.scrollTop < NEAR_EDGE) loadOlder();
    fillNear();
  }

  /** Read what is missing once the reader comes near, from the side on which they are. */
  function fillNear(): void {
    // The element is looked for among those of all messages.
    if (chat.gapAfter === null) return;
    const gap = content.current?.querySelector(".timeline-gap")?.getBoundingClientRect();
    const shown = scroller.current?.getBoundingClientRect();
    if (!gap || !shown || following.current.isSeeking) return;
    if (gap.bottom < shown.top - NEAR_EDGE || gap.top > shown.bottom + NEAR_EDGE) return;
    fillGap(gap.top > shown.top ? "older" : "newer");
  }

  function toLatest(): void {
    const element = scroller.current;
    if (!element) return;
    following.current = { isOn: true, top: element.scrollTop, isSeeking: false };
    element.scrollTo({ top: element.scrollHeight, behavior: "smooth" });
  }

  function jump(by: 1 | -1): void {
    const element = scroller.current;
    if (!element) return;
    const edge = element.getBoundingClientRect().top + JUMP_MARGIN;
    const row = content.current && nextMessage(content.current, edge, by);
    if (row) {
      following.current = { isOn: false, top: element.scrollTop, isSeeking: false };
      element.scrollTo({ top: element.scrollTop + row.getBoundingClientRect().top - edge });
      row.classList.remove("is-target");
      requestAnimationFrame(() => row.classList.add("is-target"));
    } else if (by > 0) toLatest();
    else {
      element.scrollTo({ top: 0 });
      loadOlder();
    }
  }

  const jumping = useRef(jump);
  jumping.current = jump;
  useEffect(() => {
    const onJump = (event: Event): void => jumping.current((event as CustomEvent<1 | -1>).detail);
    addEventListener(JUMP, onJump);
    return () => removeEventListener(JUMP, onJump);
  }, []);

  return { isAtEnd, onScroll, loadOlder, fillGap, toLatest, jump };
}

/** Return which of some rows is the next from the edge, by their distances below it; null for none. */
export function jumpTarget(distances: readonly number[], by: 1 | -1): number | null {
  const found = by > 0 ? distances.findIndex((each) => each > 1) : distances.findLastIndex((each) => each < -1);
  return found === -1 ? null : found;
}

/** Return the person's own message that is the next from the edge. Groups on its other side are left out. */
function nextMessage(content: Element, edge: number, by: 1 | -1): Element | undefined {
  const groups = groupsIn(content);
  for (const group of by > 0 ? groups : groups.toReversed()) {
    const { top, bottom } = group.getBoundingClientRect();
    if (by > 0 ? bottom <= edge : top >= edge) continue;
    const rows = [...group.getElementsByClassName("user-message")];
    const found = jumpTarget(rows.map((row) => row.getBoundingClientRect().top - edge), by);
    if (found !== null) return rows[found];
  }
  return undefined;
}

/** Stay at the end while the content grows, as long as the reader is there. */
function useFollowing(scroller: Place, content: Place, following: RefObject<Following>): void {
  useEffect(() => {
    const element = scroller.current;
    if (!element || !content.current) return;
    const observer = new ResizeObserver(() => {
      if (!isFollowed(following.current, element)) return;
      element.scrollTop = element.scrollHeight;
      following.current.top = element.scrollTop;
    });
    observer.observe(content.current);
    observer.observe(element);
    return () => observer.disconnect();
  }, [scroller, content, following]);
}
