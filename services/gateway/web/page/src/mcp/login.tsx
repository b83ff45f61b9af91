/**
 * Logins at MCP servers, in a window of their own. The window tells how it ended over a channel of this
 * origin: the way back to its opener is cut once it visited another site.
 */
import { useEffect, useEffectEvent, useState } from "react";
import { Button } from "../ui/button.tsx";
import { say } from "../ui/toasts.tsx";
import { type Server, stateOf } from "./selection.ts";
import { refreshServers } from "./servers.ts";

const CHANNEL = "parley.mcp.login";

interface LoginMessage {
  type: typeof CHANNEL;
  server_id: string;
  outcome: "connected" | "failed";
}

if (typeof BroadcastChannel === "function") {
  new BroadcastChannel(CHANNEL).onmessage = (event: MessageEvent<LoginMessage>) => {
    if (event.data?.type !== CHANNEL) return;
    say(event.data.outcome === "connected" ? "Your account is connected." : "The login failed. Its window says why.");
    void refreshServers();
  };
}

/** Run `act` when the person has connected an account at a server, in whichever window of this browser. */
export function useConnected(serverId: string, act: () => void): void {
  const onMessage = useEffectEvent((message: LoginMessage | null) => {
    if (message?.type === CHANNEL && message.server_id === serverId && message.outcome === "connected") act();
  });
  useEffect(() => {
    if (typeof BroadcastChannel !== "function") return;
    const channel = new BroadcastChannel(CHANNEL);
    channel.onmessage = (event: MessageEvent<LoginMessage | null>) => onMessage(event.data);
    return () => channel.close();
  }, []);
}

/** Open the window of a login; return whether the browser let it open. */
function openLogin(serverId: string): boolean {
  return window.open(addressOf(serverId), `parley-mcp-${serverId}`, "popup,width=560,height=720") !== null;
}

function addressOf(serverId: string): string {
  return `/mcp/login/${encodeURIComponent(serverId)}`;
}

export function ConnectButton({ server }: { server: Server }) {
  const words = server.authorization_status === "not_connected" ? "Connect" : "Connect again";
  if (stateOf(server).action !== "connect") return null;
  return <LoginButton serverId={server.id} words={words} small />;
}

/** Opens the window of a login; a link instead, if the browser blocks windows. */
export function LoginButton({ serverId, words, small = false }: { serverId: string; words: string; small?: boolean }) {
  const [isBlocked, setBlocked] = useState(false);
  return (
    <>
      <Button small={small} look="primary" onClick={() => setBlocked(!openLogin(serverId))}>
        {words}
      </Button>
      {isBlocked && (
        <span className="field-problem" role="alert">
          Your browser blocked the window. Allow windows of this site, or{" "}
          <a href={addressOf(serverId)} target="_blank" rel="noreferrer">
            log in in a tab
          </a>
          .
        </span>
      )}
    </>
  );
}
