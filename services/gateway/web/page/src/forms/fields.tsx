/** Fields of forms: a label, the input, what is wrong with it, and a hint. */
import { type ReactNode, type Ref, useId } from "react";

interface FieldProps {
  label: ReactNode;
  hint?: ReactNode;
  problem?: string | undefined;
}

interface Described {
  id: string;
  "aria-invalid": boolean;
  "aria-describedby": string | undefined;
}

function Field({ label, hint, problem, children }: FieldProps & { children: (input: Described) => ReactNode }) {
  const id = useId();
  const noteId = `${id}-note`;
  const hasNote = Boolean(problem) || Boolean(hint);
  return (
    <div className="field">
      <label className="field-label" htmlFor={id}>
        {label}
      </label>
      {children({
        id,
        "aria-invalid": Boolean(problem),
        "aria-describedby": hasNote ? noteId : undefined,
      })}
      {hasNote && (
        <span id={noteId} className={problem ? "field-problem" : "field-hint"} {...(problem ? { role: "alert" } : {})}>
          {problem ?? hint}
        </span>
      )}
    </div>
  );
}

interface TextProps extends FieldProps {
  value: string;
  onChange: (value: string) => void;
  type?: "text" | "password" | "email" | "url" | "number" | "date" | "datetime-local";
  autoComplete?: string;
  required?: boolean;
  disabled?: boolean;
  maxLength?: number;
  placeholder?: string;
  ref?: Ref<HTMLInputElement>;
}

export function TextField({ value, onChange, type = "text", label, hint, problem, ...rest }: TextProps) {
  return (
    <Field label={label} hint={hint} problem={problem}>
      {(described) => (
        <input
          className="input"
          type={type}
          value={value}
          onChange={(event) => onChange(event.target.value)}
          autoComplete="off"
          {...described}
          {...rest}
        />
      )}
    </Field>
  );
}

interface AreaProps extends FieldProps {
  value: string;
  onChange: (value: string) => void;
  rows?: number;
  disabled?: boolean;
}

export function AreaField({ value, onChange, rows = 8, label, hint, problem, disabled }: AreaProps) {
  return (
    <Field label={label} hint={hint} problem={problem}>
      {(described) => (
        <textarea
          className="input"
          rows={rows}
          value={value}
          disabled={disabled}
          onChange={(event) => onChange(event.target.value)}
          {...described}
        />
      )}
    </Field>
  );
}

interface SelectProps<T extends string> extends FieldProps {
  value: T;
  options: readonly (readonly [T, string])[];
  onChange: (value: T) => void;
  disabled?: boolean;
}

export function SelectField<T extends string>(props: SelectProps<T>) {
  const { value, options, onChange, label, hint, problem, disabled } = props;
  return (
    <Field label={label} hint={hint} problem={problem}>
      {(described) => (
        <select
          className="input"
          value={value}
          disabled={disabled}
          onChange={(event) => onChange(event.target.value as T)}
          {...described}
        >
          {options.map(([key, words]) => (
            <option key={key} value={key}>
              {words}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** Options with the one that is stored, also if it is not in the list any more. */
export function withStored(options: readonly (readonly [string, string])[], stored: string): readonly (readonly [string, string])[] {
  return options.some(([id]) => id === stored) ? options : [...options, [stored, "What is stored"]];
}

interface CheckProps {
  label: ReactNode;
  hint?: ReactNode;
  checked: boolean;
  onChange: (checked: boolean) => void;
  disabled?: boolean;
}

export function CheckField({ label, hint, checked, onChange, disabled }: CheckProps) {
  return (
    <label className="choice">
      <input
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChange(event.target.checked)}
      />
      <span>
        {label}
        {hint && <span className="field-hint"> {hint}</span>}
      </span>
    </label>
  );
}

interface ChecksProps<T extends string> extends FieldProps {
  /** Each with its label and what it means. */
  options: readonly (readonly [T, string, string])[];
  chosen: readonly T[];
  onChange: (chosen: readonly T[]) => void;
}

/** Several of a few: the chosen ones stay in the order of the options. */
export function ChecksField<T extends string>({ options, chosen, onChange, label, hint, problem }: ChecksProps<T>) {
  const noteId = useId();
  const hasNote = Boolean(problem) || Boolean(hint);
  function toggle(value: T, isOn: boolean): void {
    onChange(options.map(([key]) => key).filter((key) => (key === value ? isOn : chosen.includes(key))));
  }
  return (
    <fieldset className="field" {...(hasNote ? { "aria-describedby": noteId } : {})}>
      <legend className="field-label">{label}</legend>
      {options.map(([key, words, meaning]) => (
        <CheckField key={key} label={words} hint={meaning} checked={chosen.includes(key)} onChange={(isOn) => toggle(key, isOn)} />
      ))}
      {hasNote && (
        <span id={noteId} className={problem ? "field-problem" : "field-hint"} {...(problem ? { role: "alert" } : {})}>
          {problem ?? hint}
        </span>
      )}
    </fieldset>
  );
}
