/**
 * Work for the next frame, in one callback of the browser. What arrived is taken first and rendered,
 * so that what is shown of it can follow in the same frame.
 */
import { flushSync } from "react-dom";

type Work = (now: number) => void;

export interface Frames {
  /** Take what arrived; call what is returned to leave it. */
  take: (work: Work) => () => void;
  /** Show what was taken. */
  show: (work: Work) => () => void;
}

export function createFrames(request: (run: Work) => void): Frames {
  let taking = new Set<Work>();
  let showing = new Set<Work>();
  let isRequested = false;

  function run(now: number): void {
    const works = [taking, showing];
    taking = new Set();
    showing = new Set();
    isRequested = false;
    // By itself a change of a component would be rendered after this frame, and shown with the next one.
    for (const each of works) flushSync(() => each.forEach((work) => attempt(work, now)));
  }

  function added(set: Set<Work>, work: Work): () => void {
    set.add(work);
    if (!isRequested) request(run);
    isRequested = true;
    return () => set.delete(work);
  }

  return { take: (work) => added(taking, work), show: (work) => added(showing, work) };
}

/** Do some work; if it fails, the other work of the frame is still done. */
function attempt(work: Work, now: number): void {
  try {
    work(now);
  } catch (error) {
    reportError(error);
  }
}

export const frames = createFrames((run) => requestAnimationFrame(run));
