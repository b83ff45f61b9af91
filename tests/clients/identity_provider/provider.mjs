// A certified OpenID Connect provider with one client, for tests. It prints its issuer.
// Usage: provider.mjs CLIENT_ID CLIENT_SECRET REDIRECT_URI LOGOUT_URI
import { createServer } from "node:http";

import Provider from "oidc-provider";

const [client_id, client_secret, redirect_uri, logout_uri] = process.argv.slice(2);
const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id,
        client_secret,
        redirect_uris: [redirect_uri],
        post_logout_redirect_uris: [logout_uri],
      },
    ],
    cookies: { keys: ["of the tests"] },
    claims: {
      openid: ["sub"],
      profile: ["name", "preferred_username"],
      email: ["email"],
      groups: ["groups"],
    },
    // Claims are in the ID token, so that no further request is needed.
    conformIdTokenClaims: false,
    async findAccount(_context, id) {
      const claims = {
        sub: id,
        name: "Grace Hopper",
        preferred_username: id,
        email: `${id}@corp.example`,
        groups: ["eng"],
      };
      return { accountId: id, claims: async () => claims };
    },
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
