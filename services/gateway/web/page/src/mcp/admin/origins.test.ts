import { expect, test } from "vitest";
import { needsCredentials } from "./origins.ts";

const KEYED = { url: "https://a.example/mcp", auth_kind: "api_key", oauth: null } as const;
const ENDPOINTS = { client_id: "", issuer: "", authorization_url: "", token_url: "", revocation_url: "", scopes: [] };

test.each([
  ["https://a.example/v2", false],
  ["https://A.example:443/mcp", false],
  ["http://a.example/mcp", true],
  ["https://a.example:8443/mcp", true],
  ["https://b.example/mcp", true],
  ["https://", true],
])("another scheme, host or port needs the credentials again: %s", (url, isNeeded) => {
  expect(needsCredentials(KEYED, url)).toBe(isNeeded);
});

test("the secret of a client does not depend on the address if its issuer is named", () => {
  const login = { ...KEYED, auth_kind: "oauth2", oauth: ENDPOINTS } as const;
  expect(needsCredentials(login, "https://b.example/mcp")).toBe(true);
  expect(needsCredentials({ ...login, oauth: { ...ENDPOINTS, issuer: "https://i.example" } }, "https://b.example/mcp")).toBe(false);
});
