/** Groups of messages that do not change any more: the browser leaves out those that are far from what is shown. */
import { createContext, type ReactNode, type RefObject, useContext, useEffect, useState } from "react";

/** The width of the column of messages in whole pixels; 0 as long as it is not known. */
export const ColumnWidth = createContext(0);

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

/**
 * The box of a group, whose layout stays as it is while the last group grows. What changes with the
 * width is here alone: the rows are given as children, so that they are not rendered again.
 */
export function GroupBox({ isGrowing, children }: { isGrowing: boolean; children: ReactNode }) {
  const isStill = useIsStill(isGrowing, useContext(ColumnWidth));
  return <div className={`timeline-group${isStill ? " is-still" : ""}`}>{children}</div>;
}

/** Return whether a group was laid out with this width and does not grow: the browser knows its height then. */
function useIsStill(isGrowing: boolean, width: number): boolean {
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
