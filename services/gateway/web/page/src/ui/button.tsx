import type { ButtonHTMLAttributes, Ref } from "react";
import { Icon, type IconName } from "./icon.tsx";

type Props = ButtonHTMLAttributes<HTMLButtonElement> & { ref?: Ref<HTMLButtonElement> };

interface ButtonProps extends Props {
  look?: "plain" | "primary" | "danger" | "quiet";
  small?: boolean;
  icon?: IconName;
}

export function Button({ look = "plain", small, icon, className = "", children, ...rest }: ButtonProps) {
  const classes = `button is-${look}${small ? " is-small" : ""} ${className}`;
  return (
    <button type="button" className={classes} {...rest}>
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

interface IconButtonProps extends Props {
  icon: IconName;
  label: string;
}

export function IconButton({ icon, label, className = "", ...rest }: IconButtonProps) {
  return (
    <button type="button" className={`icon-button ${className}`} aria-label={label} title={label} {...rest}>
      <Icon name={icon} />
    </button>
  );
}
