/** Passkeys: the browser's credentials, written as the API wants them. */
import { answered, api } from "../api/client.ts";

export function hasPasskeys(): boolean {
  return "PublicKeyCredential" in window;
}

/** Sign in with a passkey of this device. */
export async function signInWithPasskey(): Promise<void> {
  const begun = await answered(api.POST("/api/v1/sign-in/passkey/options", { body: {} }));
  const options = begun.options as PublicKeyCredentialRequestOptionsJSON | { publicKey: PublicKeyCredentialRequestOptionsJSON };
  const json = "publicKey" in options ? options.publicKey : options;
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(json);
  const credential = (await navigator.credentials.get({ publicKey })) as PublicKeyCredential | null;
  if (!credential) throw new Error("No passkey was chosen.");
  await answered(
    api.POST("/api/v1/sign-in/passkey", {
      body: {
        continuation: begun.continuation,
        credential: credential.toJSON() as unknown as Record<string, never>,
      },
    }),
  );
}
