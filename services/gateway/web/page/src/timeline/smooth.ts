/** Text that comes in pieces is shown evenly: a little behind, and faster the more is behind. */
import { useEffect, useRef, useState } from "react";
import { frames } from "../ui/frames.ts";

const PER_S = 72;
const PER_S_MAX = 420;
/** For each character that is behind, so many more are shown in a second. */
const PER_S_BEHIND = 2;
const BEHIND_MAX = 120;
const FRAME_MAX = 48;
/** Far more than that is shown at once, as after a tab was hidden. */
const SKIPPED = 1_000;

const reduced = matchMedia("(prefers-reduced-motion: reduce)");

/** Return how much of a text is shown after some time, from how much was. */
export function revealed(shown: number, total: number, elapsedMs: number): number {
  const behind = total - shown;
  if (behind <= 0) return total;
  if (behind > SKIPPED) return total - BEHIND_MAX;
  const due = (Math.min(PER_S_MAX, PER_S + behind * PER_S_BEHIND) * elapsedMs) / 1000;
  return Math.min(total, shown + Math.min(FRAME_MAX, Math.max(due, behind - BEHIND_MAX)));
}

/** Return the beginning of a text, without half of a character at its end. */
export function beginning(text: string, length: number): string {
  const end = Math.floor(length);
  const last = text.charCodeAt(end - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? end - 1 : end);
}

/** Return what is shown of a text that grows; all of it once it does not, or without motion. */
export function useSmoothed(text: string, isLive: boolean): string {
  const isSmooth = isLive && !reduced.matches;
  const [shown, setShown] = useState(text.length);
  const at = useRef(text.length);
  const total = useRef(text.length);
  total.current = text.length;
  const isBehind = isSmooth && shown < text.length;

  useEffect(() => {
    if (!isBehind) return;
    let before = performance.now();
    const step = (now: number): void => {
      at.current = revealed(at.current, total.current, Math.max(0, now - before));
      before = now;
      setShown(at.current);
      leave = frames.show(step);
    };
    let leave = frames.show(step);
    return () => leave();
  }, [isBehind]);

  return isSmooth ? beginning(text, shown) : text;
}
