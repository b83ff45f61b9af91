/** What a screen shows when there is nothing to show yet, or no longer. */
import type { ReactNode } from "react";
import { isAbsent, wordsOf } from "../api/problem.ts";
import { Button } from "./button.tsx";
import { Icon, type IconName } from "./icon.tsx";

export function Skeleton({ rows = 4, label = "Loading" }: { rows?: number; label?: string }) {
  const widths = ["w-60", "w-90", "w-75", "w-40", "w-85"];
  return (
    <div className="skeleton" role="status" aria-label={label}>
      {Array.from({ length: rows }, (_, row) => (
        <span key={row} className={widths[row % widths.length]} />
      ))}
    </div>
  );
}

interface EmptyProps {
  title: string;
  children?: ReactNode;
}

export function Empty({ title, children }: EmptyProps) {
  return (
    <div className="state">
      <h1 className="state-title">{title}</h1>
      {children && <div className="state-text">{children}</div>}
    </div>
  );
}

interface FailureProps {
  error: unknown;
  what: string;
  onRetry?: (() => void) | undefined;
}

/** A screen that could not be read. */
export function Failure({ error, what, onRetry }: FailureProps) {
  if (isAbsent(error)) {
    return (
      <Empty title={`This ${what} is not there`}>
        It was deleted, or it belongs to somebody who does not share it with you.
      </Empty>
    );
  }
  return (
    <div className="state" role="alert">
      <h1 className="state-title">The {what} could not be read</h1>
      <p className="state-text">{wordsOf(error)}</p>
      {onRetry && <Button onClick={onRetry}>Retry</Button>}
    </div>
  );
}

interface NoticeProps {
  kind?: "plain" | "warn" | "bad";
  icon?: IconName;
  title?: string | undefined;
  alert?: boolean;
  children?: ReactNode;
  actions?: ReactNode;
}

export function Notice({ kind = "plain", icon = "warn", title, alert, children, actions }: NoticeProps) {
  return (
    <div className={`notice is-${kind}`} {...(alert ? { role: "alert" } : {})}>
      <Icon name={icon} />
      <div className="notice-text">
        {title && <div className="notice-title">{title}</div>}
        {children}
      </div>
      {actions}
    </div>
  );
}
