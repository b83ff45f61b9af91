/** What was shown last time is shown until the server answers, so that nothing moves then. */
import { useEffect } from "react";
import { readStored, writeStored } from "./stored.ts";

export function useRemembered(key: string, current: string | undefined): string | null {
  useEffect(() => {
    if (current !== undefined) writeStored(key, current);
  }, [key, current]);
  return current ?? readStored(key);
}
