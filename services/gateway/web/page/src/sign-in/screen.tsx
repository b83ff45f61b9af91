/** Signing in by password and second factor, by passkey, or with an identity provider. */
import "./sign-in.css";
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useSearch } from "wouter";
import { answered, api } from "../api/client.ts";
import { Problem, wordsOf } from "../api/problem.ts";
import { Button } from "../ui/button.tsx";
import mark from "../ui/mark.svg";
import { Notice } from "../ui/states.tsx";
import { hasPasskeys, signInWithPasskey } from "./passkey.ts";
import { rememberAddress, returnAddress } from "./session.ts";

const signInWays = queryOptions({
  queryKey: ["configuration"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/configuration", { signal })),
  staleTime: Number.POSITIVE_INFINITY,
});

export default function SignInScreen() {
  const search = useSearch();
  const configuration = useQuery(signInWays).data;
  const [continuation, setContinuation] = useState("");
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);

  async function attempt(work: () => Promise<string | null | undefined>): Promise<void> {
    setBusy(true);
    setProblem("");
    try {
      const next = await work();
      if (next) setContinuation(next);
      else location.assign(returnAddress(search));
    } catch (error) {
      if (error instanceof Problem && error.code === "SIGN_IN_NOT_BEGUN") setContinuation("");
      setProblem(wordsOf(error));
    }
    setBusy(false);
  }

  return (
    <main className="sign-in">
      <div className="sign-in-card">
        <h1 className="sign-in-title">
          <img src={mark} alt="" />
          Parley
        </h1>
        <p className="sign-in-lead">
          {search.includes("to=")
            ? "Sign in to go on where you were. What you had written is still there."
            : "Sign in to talk with your agents."}
        </p>
        {problem && (
          <Notice kind="bad" alert>
            {problem}
          </Notice>
        )}
        {continuation ? (
          <CodeForm
            isBusy={isBusy}
            onCode={(code) =>
              void attempt(async () => {
                const body = { continuation, code };
                await answered(api.POST("/api/v1/sign-in/second-factor", { body }));
                return null;
              })
            }
          />
        ) : (
          <PasswordForm
            isBusy={isBusy}
            onPassword={(login, password) =>
              void attempt(async () => {
                const body = { login, password };
                return (await answered(api.POST("/api/v1/sign-in", { body }))).continuation;
              })
            }
          />
        )}
        {hasPasskeys() && !continuation && (
          <>
            <div className="sign-in-or">or</div>
            <Button
              icon="key"
              disabled={isBusy}
              onClick={() =>
                void attempt(async () => {
                  await signInWithPasskey();
                  return null;
                })
              }
            >
              Use a passkey
            </Button>
          </>
        )}
        {!continuation &&
          configuration?.issuers.map((issuer) => (
            <a
              key={issuer.name}
              className="button is-plain"
              href={issuer.path}
              onClick={() => rememberAddress(returnAddress(search))}
            >
              Sign in with {issuer.display_name}
            </a>
          ))}
        <p className="sign-in-foot">
          New here, or password forgotten? Ask an administrator for a link.{" "}
          <a href="/login">Other ways, and without JavaScript</a>
        </p>
      </div>
    </main>
  );
}

interface PasswordFormProps {
  isBusy: boolean;
  onPassword: (login: string, password: string) => void;
}

function PasswordForm({ isBusy, onPassword }: PasswordFormProps) {
  return (
    <form
      className="sign-in-card"
      onSubmit={(event) => {
        event.preventDefault();
        const form = new FormData(event.currentTarget);
        onPassword(String(form.get("login")), String(form.get("password")));
      }}
    >
      <label className="field">
        <span className="field-label">Login</span>
        <input className="input" name="login" autoComplete="username" autoCapitalize="none" required maxLength={64} autoFocus />
      </label>
      <label className="field">
        <span className="field-label">Password</span>
        <input className="input" name="password" type="password" autoComplete="current-password" required maxLength={256} />
      </label>
      <Button look="primary" type="submit" disabled={isBusy}>
        {isBusy ? "Signing in…" : "Sign in"}
      </Button>
    </form>
  );
}

function CodeForm({ isBusy, onCode }: { isBusy: boolean; onCode: (code: string) => void }) {
  return (
    <form
      className="sign-in-card"
      onSubmit={(event) => {
        event.preventDefault();
        onCode(String(new FormData(event.currentTarget).get("code")));
      }}
    >
      <label className="field">
        <span className="field-label">Code of your authenticator app, or a recovery code</span>
        <input className="input" name="code" autoComplete="one-time-code" required maxLength={32} autoFocus />
      </label>
      <Button look="primary" type="submit" disabled={isBusy}>
        Go on
      </Button>
    </form>
  );
}
