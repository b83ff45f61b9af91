/** Where the credentials of a server are sent to. */
import type { Server } from "../selection.ts";

/** Return whether another address of a server means that its stored credentials have to be given again. */
export function needsCredentials(server: Pick<Server, "url" | "auth_kind" | "oauth">, url: string): boolean {
  const oauth = server.auth_kind === "oauth2" ? server.oauth : undefined;
  if (oauth?.issuer || (oauth?.authorization_url && oauth.token_url)) return false;
  return originOf(server.url ?? "") !== originOf(url);
}

function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : url;
}
