/** Files on their way to the server, with how far each is and why one failed. */
import { type RefObject, useEffect, useRef, useState } from "react";
import { shrunk } from "../pictures/shrink.ts";
import { complain } from "../ui/toasts.tsx";
import type { DraftFile } from "../composer/drafts.ts";
import { outcomeOf } from "./failed.ts";
import { upload } from "./upload.ts";

export interface Pending {
  key: number;
  file: File;
  /** The text that was pasted, if the file was made of one. */
  pasted: string | null;
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
  /** Store a text that was pasted as a file. */
  addText: (text: string) => void;
  retry: (key: number) => void;
  remove: (key: number) => void;
}

let last = 0;

interface Owner {
  /** Whether the composer is still shown; what fails afterwards is complained about. */
  isShown: RefObject<boolean>;
  onStored: (file: DraftFile) => void;
  /** Take a pasted text back that was not stored. */
  onReturned: (text: string) => void;
  /** Keep a pasted text that is not stored yet while the page is being left. */
  onLeft: (text: string) => void;
}

export function useUploads(owner: Owner): Uploads {
  const [pending, setPending] = useState<readonly Pending[]>([]);
  const stops = useRef(new Map<number, AbortController>());
  /** One after the other, so that they keep their order and the server is not flooded. */
  const line = useRef(Promise.resolve());
  const current = useRef(owner);
  current.current = owner;
  /** Pasted texts whose file is not stored yet. */
  const unsaved = useRef(new Map<number, string>());
  useEffect(() => {
    // A sign-out that another request noticed, a reload: the answer to the upload is never seen.
    const leave = (): void => {
      for (const text of unsaved.current.values()) current.current.onLeft(text);
      unsaved.current.clear();
    };
    addEventListener("pagehide", leave);
    return () => removeEventListener("pagehide", leave);
  }, []);

  function change(key: number, next: Partial<Pending>): void {
    setPending((was) => was.map((each) => (each.key === key ? { ...each, ...next } : each)));
  }

  function remove(key: number): void {
    stops.current.get(key)?.abort(new Error("Removed."));
    stops.current.delete(key);
    unsaved.current.delete(key);
    setPending((was) => was.filter((each) => each.key !== key));
  }

  function fail({ key, file, pasted }: Pending, error: unknown): void {
    const { isShown, onReturned } = current.current;
    const outcome = outcomeOf({ name: file.name, pasted, isShown: isShown.current, error });
    if (outcome.kind === "kept") return change(key, { problem: outcome.problem });
    if (outcome.kind === "returned") onReturned(outcome.text);
    remove(key);
    complain(new Error(outcome.words));
  }

  async function send(sent: Pending): Promise<void> {
    const { key, file } = sent;
    const stop = new AbortController();
    stops.current.set(key, stop);
    const before = line.current;
    const done = Promise.withResolvers<void>();
    line.current = done.promise;
    try {
      await before;
      stop.signal.throwIfAborted();
      const small = await shrunk(file);
      stop.signal.throwIfAborted();
      current.current.onStored(await upload(small, (share) => change(key, { share }), stop.signal));
      remove(key);
    } catch (error) {
      if (!stop.signal.aborted) fail(sent, error);
    } finally {
      done.resolve();
    }
  }

  function begin(files: Iterable<File>, pasted: string | null): void {
    const added = [...files].map((file): Pending => ({ key: (last += 1), file, pasted, share: 0, problem: null }));
    setPending((was) => [...was, ...added]);
    for (const each of added) {
      if (pasted !== null) unsaved.current.set(each.key, pasted);
      void send(each);
    }
  }

  function add(files: Iterable<File>): void {
    begin(files, null);
  }

  function addText(text: string): void {
    begin([new File([text], "pasted.txt", { type: "text/plain" })], text);
  }

  function retry(key: number): void {
    const found = pending.find((each) => each.key === key);
    if (!found) return;
    change(key, { problem: null, share: 0 });
    void send(found);
  }

  return { pending, isBusy: pending.some((each) => each.problem === null), add, addText, retry, remove };
}
