/** The edge of a pane, with which it is made wider: by pointer, or by the arrow keys. */
import { type KeyboardEvent, type PointerEvent, useMemo, useRef, useState } from "react";
import { readStored, writeStored } from "./stores/stored.ts";

const STEP = 16;

export interface Pane {
  /** Its width in pixels; null as long as none was chosen. */
  width: number | null;
  choose: (width: number | null) => void;
}

/** The width of a pane, kept in this browser. */
export function usePane(key: string): Pane {
  const [width, setWidth] = useState<number | null>(() => Number(readStored(key)) || null);
  return useMemo(() => {
    function choose(next: number | null): void {
      writeStored(key, next === null ? null : String(Math.round(next)));
      setWidth(next);
    }
    return { width, choose };
  }, [key, width]);
}

interface SplitterProps {
  label: string;
  pane: Pane;
  least: number;
  most: number;
  /** On which side of the pane its edge is. */
  side: "left" | "right";
}

export function Splitter({ label, pane, least, most, side }: SplitterProps) {
  const edge = useRef<HTMLDivElement>(null);
  const grip = useRef<{ x: number; width: number } | null>(null);
  const sign = side === "right" ? 1 : -1;
  const now = (): number => edge.current?.parentElement?.getBoundingClientRect().width ?? least;
  const choose = (width: number): void => pane.choose(Math.min(most, Math.max(least, width)));

  function onKeyDown(event: KeyboardEvent): void {
    const step = event.key === "ArrowRight" ? STEP : event.key === "ArrowLeft" ? -STEP : 0;
    if (!step) return;
    event.preventDefault();
    choose(now() + step * sign);
  }

  function onPointerDown(event: PointerEvent<HTMLDivElement>): void {
    event.currentTarget.setPointerCapture(event.pointerId);
    grip.current = { x: event.clientX, width: now() };
  }

  function onPointerMove(event: PointerEvent): void {
    if (grip.current) choose(grip.current.width + (event.clientX - grip.current.x) * sign);
  }

  return (
    <div
      ref={edge}
      className={`splitter is-${side}`}
      role="separator"
      aria-orientation="vertical"
      aria-label={label}
      aria-valuemin={least}
      aria-valuemax={most}
      aria-valuenow={pane.width ?? least}
      tabIndex={0}
      title="Drag, or use the arrow keys; a double click takes the width back"
      onKeyDown={onKeyDown}
      onPointerDown={onPointerDown}
      onPointerMove={onPointerMove}
      onPointerUp={() => (grip.current = null)}
      onDoubleClick={() => pane.choose(null)}
    />
  );
}
