/** Make a passkey on this device, for the options that the server gave. */
export async function newPasskey(given: unknown): Promise<Record<string, never>> {
  const options = given as
    | PublicKeyCredentialCreationOptionsJSON
    | { publicKey: PublicKeyCredentialCreationOptionsJSON };
  const json = "publicKey" in options ? options.publicKey : options;
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(json);
  const credential = (await navigator.credentials.create({ publicKey })) as PublicKeyCredential | null;
  if (!credential) throw new Error("No passkey was made.");
  return credential.toJSON() as unknown as Record<string, never>;
}
