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
  /** The level of the title: 1 where the state is all of the screen. */
  level?: 1 | 2;
  children?: ReactNode;
}

export function Empty({ title, level = 2, children }: EmptyProps) {
  const Title = `h${level}` as const;
  return (
    <div className="state">
      <Title className="state-title">{title}</Title>
      {children && <div className="state-text">{children}</div>}
    </div>
  );
}

interface FailureProps {
  error: unknown;
  what: string;
  level?: 1 | 2;
  onRetry?: (() => void) | undefined;
}

/** A screen that could not be read. */
export function Failure({ error, what, level = 2, onRetry }: FailureProps) {
  const Title = `h${level}` as const;
  if (isAbsent(error)) {
    return (
      <Empty title={`This ${what} is not there`} level={level}>
        It was deleted, or it belongs to somebody who does not share it with you.
      </Empty>
    );
  }
  return (
    <div className="state" role="alert">
      <Title className="state-title">The {what} could not be read</Title>
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
