/** A button with a menu of commands below it. */
import { type ReactNode, type Ref, useId, useImperativeHandle, useLayoutEffect, useRef, useState } from "react";
import { Icon, type IconName } from "./icon.tsx";

interface MenuProps {
  /** Returns the button; spread the attributes onto it. */
  button: (attributes: MenuButtonAttributes) => ReactNode;
  label: string;
  /** What stands above the commands, such as a field to search them. */
  head?: ReactNode;
  onClosed?: () => void;
  ref?: Ref<MenuHandle> | undefined;
  children: ReactNode;
}

export interface MenuHandle {
  /** Open it for another element than its button, which has the focus again afterwards. */
  openFor: (element: HTMLElement, point: Point | null) => void;
}

/** A place in the window, in pixels. */
export interface Point {
  x: number;
  y: number;
}

export interface MenuButtonAttributes {
  "aria-haspopup": "menu";
  "aria-expanded": boolean;
  "aria-controls": string;
  onClick: () => void;
}

export function Menu({ button, label, head, onClosed, ref, children }: MenuProps) {
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const anchor = useRef<HTMLSpanElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const opener = useRef<{ element: HTMLElement; point: Point | null } | null>(null);
  useImperativeHandle(ref, () => ({
    openFor: (element, point) => {
      opener.current = { element, point };
      setOpen(true);
    },
  }), []);

  useLayoutEffect(() => {
    const menu = list.current;
    if (!isOpen) opener.current = null;
    if (!isOpen || !menu) return;
    menu.showPopover();
    const from = opener.current?.element ?? anchor.current?.firstElementChild;
    const point = opener.current?.point;
    function put(): void {
      if (point) place(menu!, new DOMRect(point.x, point.y));
      else if (from) place(menu!, from.getBoundingClientRect(), GAP);
    }
    put();
    (menu.querySelector<HTMLElement>("input") ?? itemsOf(menu)[0])?.focus();
    // What is read later makes it larger, and must not push it over its button.
    const observer = new ResizeObserver(put);
    observer.observe(menu);
    return () => observer.disconnect();
  }, [isOpen]);

  function close(): void {
    setOpen(false);
    onClosed?.();
    (opener.current?.element ?? (anchor.current?.firstElementChild as HTMLElement | null))?.focus();
  }

  return (
    <span ref={anchor} className="menu-anchor">
      {button({
        "aria-haspopup": "menu",
        "aria-expanded": isOpen,
        "aria-controls": id,
        onClick: () => setOpen((was) => !was),
      })}
      {isOpen && (
        <div
          ref={list}
          id={id}
          className="menu"
          {...(head ? {} : { role: "menu", "aria-label": label })}
          popover="auto"
          onToggle={(event) => {
            if ((event as unknown as { newState: string }).newState !== "closed") return;
            setOpen(false);
            onClosed?.();
          }}
          onClick={(event) => {
            const item = (event.target as Element).closest("[role^=menuitem]");
            if (item && item.getAttribute("aria-disabled") !== "true") close();
          }}
          onKeyDown={(event) => {
            event.stopPropagation();
            if (event.key === "Escape" || event.key === "Tab") return close();
            move(event.key, event.currentTarget, () => event.preventDefault());
          }}
        >
          {head ? (
            <>
              {head}
              <div role="menu" aria-label={label}>
                {children}
              </div>
            </>
          ) : (
            children
          )}
        </div>
      )}
    </span>
  );
}

/** The place of a check mark, which is empty for what is not chosen. */
export function MenuMark({ isOn }: { isOn: boolean }) {
  return isOn ? <Icon name="check" /> : <span className="icon" aria-hidden="true" />;
}

interface ItemProps {
  icon?: IconName;
  hint?: string | undefined;
  danger?: boolean;
  disabled?: boolean;
  checked?: boolean;
  /** Whether it is checked by itself, not in place of others. */
  isToggle?: boolean;
  onChoose: () => void;
  children: ReactNode;
}

export function MenuItem({ icon, hint, danger, disabled, checked, isToggle, onChoose, children }: ItemProps) {
  const isChoice = checked !== undefined;
  return (
    <button
      type="button"
      role={isChoice ? (isToggle ? "menuitemcheckbox" : "menuitemradio") : "menuitem"}
      {...(isChoice ? { "aria-checked": checked } : {})}
      aria-disabled={disabled ? "true" : undefined}
      tabIndex={-1}
      className={`menu-item${danger ? " is-danger" : ""}`}
      onClick={() => {
        if (!disabled) onChoose();
      }}
    >
      {isChoice ? <MenuMark isOn={checked} /> : icon && <Icon name={icon} />}
      <span>
        {children}
        {hint && <span className="menu-item-hint">{hint}</span>}
      </span>
    </button>
  );
}

interface SearchProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
}

/** A field above the commands that narrows them; Enter chooses the first one. */
export function MenuSearch({ label, value, onChange }: SearchProps) {
  return (
    <input
      className="input menu-search"
      type="search"
      aria-label={label}
      placeholder={label}
      value={value}
      onChange={(event) => onChange(event.target.value)}
      onKeyDown={(event) => {
        if (event.key !== "Enter" || event.nativeEvent.isComposing) return;
        event.preventDefault();
        const menu = event.currentTarget.parentElement;
        if (menu) itemsOf(menu).find((each) => each.getAttribute("aria-disabled") !== "true")?.click();
      }}
    />
  );
}

export function MenuLine() {
  return <hr className="menu-line" />;
}

export function MenuHeading({ children }: { children: ReactNode }) {
  return (
    <div className="menu-heading" role="presentation">
      {children}
    </div>
  );
}

function itemsOf(menu: Element): HTMLElement[] {
  return [...menu.querySelectorAll<HTMLElement>("[role^=menuitem]")];
}

function move(key: string, menu: Element, handled: () => void): void {
  const items = itemsOf(menu);
  const at = items.indexOf(document.activeElement as HTMLElement);
  const isInField = document.activeElement instanceof HTMLInputElement;
  const steps: Record<string, number> = {
    ArrowDown: (at + 1) % items.length,
    ArrowUp: at < 1 ? items.length - 1 : at - 1,
    ...(isInField ? {} : { Home: 0, End: items.length - 1 }),
  };
  const next = steps[key];
  if (next === undefined) return;
  handled();
  items[next]?.focus();
}

/** Between a menu and its button, in pixels. */
const GAP = 4;

/** Put a menu where it fits: below its button or point if there is room, else above it. */
function place(menu: HTMLElement, at: DOMRect, gap = 0): void {
  const size = menu.getBoundingClientRect();
  const below = at.bottom + gap + size.height <= innerHeight;
  const top = below ? at.bottom + gap : Math.max(8, at.top - size.height - gap);
  const left = Math.max(8, Math.min(at.left, innerWidth - size.width - 8));
  menu.style.top = `${top}px`;
  menu.style.left = `${left}px`;
}
