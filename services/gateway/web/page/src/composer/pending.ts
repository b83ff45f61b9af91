/** Files on their way to the server, with how far each is and why one failed. */
import { useRef, useState } from "react";
import { wordsOf } from "../api/problem.ts";
import type { DraftFile } from "./drafts.ts";
import { upload } from "./uploads.ts";

export interface Pending {
  key: number;
  file: File;
  /** The share that was sent, from 0 to 1. */
  share: number;
  /** Why it was not stored; it stays until it is tried again or removed. */
  problem: string | null;
}

export interface Uploads {
  pending: readonly Pending[];
  /** Whether something is on its way. */
  isBusy: boolean;
  add: (files: Iterable<File>) => void;
  retry: (key: number) => void;
  remove: (key: number) => void;
}

let last = 0;

export function useUploads(onStored: (file: DraftFile) => void): Uploads {
  const [pending, setPending] = useState<readonly Pending[]>([]);
  const stops = useRef(new Map<number, AbortController>());
  /** One after the other, so that they keep their order and the server is not flooded. */
  const line = useRef(Promise.resolve());
  const stored = useRef(onStored);
  stored.current = onStored;
  function change(key: number, next: Partial<Pending>): void {
    setPending((was) => was.map((each) => (each.key === key ? { ...each, ...next } : each)));
  }

  function remove(key: number): void {
    stops.current.get(key)?.abort(new Error("Removed."));
    stops.current.delete(key);
    setPending((was) => was.filter((each) => each.key !== key));
  }

  async function send({ key, file }: Pending): Promise<void> {
    const stop = new AbortController();
    stops.current.set(key, stop);
    const before = line.current;
    const done = Promise.withResolvers<void>();
    line.current = done.promise;
    try {
      await before;
      stop.signal.throwIfAborted();
      stored.current(await upload(file, (share) => change(key, { share }), stop.signal));
      remove(key);
    } catch (error) {
      if (!stop.signal.aborted) change(key, { problem: wordsOf(error) });
    } finally {
      done.resolve();
    }
  }

  function add(files: Iterable<File>): void {
    const added = [...files].map((file): Pending => ({ key: (last += 1), file, share: 0, problem: null }));
    setPending((was) => [...was, ...added]);
    for (const each of added) void send(each);
  }

  function retry(key: number): void {
    const found = pending.find((each) => each.key === key);
    if (!found) return;
    change(key, { problem: null, share: 0 });
    void send(found);
  }

  return { pending, isBusy: pending.some((each) => each.problem === null), add, retry, remove };
}
