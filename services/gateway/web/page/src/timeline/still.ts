/** Groups of messages that do not change any more: the browser leaves out those that are far from what is shown. */
import { type RefObject, useEffect, useState } from "react";

/** Return the width of an element, in whole pixels. */
export function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (!element.current) return;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.round(entry?.contentRect.width ?? 0)));
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [element]);
  return width;
}

/** Return whether a group was laid out with this width and does not grow: the browser knows its height then. */
export function useIsStill(isGrowing: boolean, width: number): boolean {
  const [laidOut, setLaidOut] = useState(0);
  useEffect(() => {
    if (isGrowing || !width) return;
    // Its height is noted at the end of a frame, so it is known in the second one.
    let frame = requestAnimationFrame(() => {
      frame = requestAnimationFrame(() => setLaidOut(width));
    });
    return () => cancelAnimationFrame(frame);
  }, [isGrowing, width]);
  return !isGrowing && width > 0 && laidOut === width;
}
