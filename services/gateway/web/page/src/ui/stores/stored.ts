/** Local storage that never fails: it may be full, private or switched off. */
import { useEffect, useState } from "react";

export function readStored(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** Store a text, and tell whether that worked. */
export function writeStored(key: string, value: string | null): boolean {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
    return true;
  } catch {
    return false;
  }
}

/** Return the keys that begin so. */
export function storedKeys(prefix: string): string[] {
  try {
    return Object.keys(localStorage).filter((each) => each.startsWith(prefix));
  } catch {
    return [];
  }
}

/** A choice that is kept in this browser. */
export function useStored<T extends string>(key: string, initial: T): [T, (next: T) => void] {
  const [value, setValue] = useState<T>(() => (readStored(key) as T | null) ?? initial);
  return [
    value,
    (next) => {
      writeStored(key, next);
      setValue(next);
    },
  ];
}

/** What was shown last time is shown until the server answers, so that nothing moves then. */
export function useRemembered(key: string, current: string | undefined): string | null {
  useEffect(() => {
    if (current !== undefined) writeStored(key, current);
  }, [key, current]);
  return current ?? readStored(key);
}
