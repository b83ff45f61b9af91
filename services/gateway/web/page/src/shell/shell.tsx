/** The frame of all screens: the sidebar, the place of the screen, and the keys. */
import { useQuery } from "@tanstack/react-query";
import { type CSSProperties, lazy, type ReactNode, Suspense, useEffect, useState, useSyncExternalStore } from "react";
import { useLocation } from "wouter";
import { me } from "../api/queries.ts";
import { isAbsent } from "../api/problem.ts";
import { BreakGlassBanner } from "../break-glass/banner.tsx";
import { Sidebar } from "../sidebar/sidebar.tsx";
import { useFeed } from "../stream/feed.ts";
import { Icon } from "../ui/icon.tsx";
import { usePane } from "../ui/splitter.tsx";
import { Failure } from "../ui/states.tsx";
import { KeysDialog } from "./keys-dialog.tsx";
import { FIND, KEYS_SHOWN, useShellKeys } from "./keys.ts";
import { sideClosed, sideShown } from "./side-state.ts";

const FindDialog = lazy(() => import("../find/find-dialog.tsx"));

export function Shell({ children }: { children: ReactNode }) {
  const who = useQuery(me);
  const [location] = useLocation();
  const [areKeysShown, showKeys] = useState(false);
  const [isFinding, setFinding] = useState(false);
  const isClosed = useSyncExternalStore(sideClosed.subscribe, sideClosed.get);
  const isShown = useSyncExternalStore(sideShown.subscribe, sideShown.get);
  const isOffline = useOffline();
  const pane = usePane("parley.side.width");
  useFeed(who.data?.id);
  useShellKeys(() => showKeys(true));
  useSignal(FIND, () => setFinding(true));
  useSignal(KEYS_SHOWN, () => showKeys(true));
  useEffect(() => sideShown.set(false), [location]);

  if (who.error && !isAbsent(who.error)) {
    return <Failure error={who.error} what="page" level={1} onRetry={() => void who.refetch()} />;
  }
  return (
    <div
      className={`shell${isClosed ? " is-side-closed" : ""}${isShown ? " is-side-shown" : ""}`}
      style={pane.width ? ({ "--side-width": `${pane.width}px` } as CSSProperties) : undefined}
    >
      <a className="skip-link button" href="#main">
        Skip to the content
      </a>
      <Sidebar pane={pane} />
      <div className="shell-main" id="main" tabIndex={-1}>
        {isOffline && (
          <div className="shell-offline" role="status">
            <Icon name="globe" />
            You are offline. What you write is kept and sent once you are back.
          </div>
        )}
        {who.data && <BreakGlassBanner userId={who.data.id} />}
        {children}
      </div>
      {isFinding && (
        <Suspense>
          <FindDialog onClose={() => setFinding(false)} />
        </Suspense>
      )}
      {areKeysShown && <KeysDialog onClose={() => showKeys(false)} />}
    </div>
  );
}

/** Do something when another part of the page asks for it. */
function useSignal(name: string, act: () => void): void {
  useEffect(() => {
    addEventListener(name, act);
    return () => removeEventListener(name, act);
  });
}

function useOffline(): boolean {
  return useSyncExternalStore(
    (tell) => {
      addEventListener("online", tell);
      addEventListener("offline", tell);
      return () => {
        removeEventListener("online", tell);
        removeEventListener("offline", tell);
      };
    },
    () => !navigator.onLine,
  );
}
