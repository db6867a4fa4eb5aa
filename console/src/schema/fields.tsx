import type { ComponentChildren } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import { writeJson } from "../lib/json.ts";
import { AnyField, type FieldProps } from "./Form.tsx";
import { chosenAfter, defaults, isNullable, type Option, resolve, type Schema, variantName } from "./schema.ts";
import { asNumber, Broken, fromInput, fromJson, toInput } from "./typed.ts";
import { variantOf } from "./validate.ts";

interface Ids {
  input: string;
  help: string;
}

/** Label, field, hint and fault: the same for every kind. */
function Row({ props, children }: { props: FieldProps; children: (ids: Ids, faulty: boolean) => ComponentChildren }) {
  const id = useId();
  const { label, required, faults, path, schema, root } = props;
  const description = resolve(schema, root).description;
  const fault = faults.find((item) => item.path === path);
  return (
    <div class={`field ${fault ? "faulty" : ""}`}>
      <label for={id}>
        <bdi>{label}</bdi> {!required && <span class="quiet small">optional</span>}
      </label>
      {description && <p class="hint">{description}</p>}
      {children({ input: id, help: `${id}-help` }, fault !== undefined)}
      <p class="fault" id={`${id}-help`}>
        {fault?.message}
      </p>
    </div>
  );
}

const inputTypes = { date: "date", time: "time", email: "email", uri: "url", "date-time": "datetime-local" } as const;

function inputType(format: string | undefined): (typeof inputTypes)[keyof typeof inputTypes] | "text" {
  return format !== undefined && format in inputTypes ? inputTypes[format as keyof typeof inputTypes] : "text";
}

export function TextField(props: FieldProps & { is: "string" | "number" | "integer" }) {
  const { value, change, is, schema, root } = props;
  const { format, maxLength, minimum, maximum } = resolve(schema, root);
  const text = value === undefined || value === null ? "" : typeof value === "object" ? writeJson(value) : String(value);
  const isLong = is === "string" && (text.includes("\n") || text.length > 80 || (maxLength ?? 0) >= 200);
  // What is required and left empty is null, if it may be.
  const empty = props.required && isNullable(schema, root) ? null : undefined;
  const [typed, setTyped] = useState("");
  const put = (next: string): void => {
    setTyped(next);
    change(next === "" ? empty : is === "string" ? fromInput(next, format) : asNumber(next));
  };
  // A number stays as it was typed for as long as it is the value: `0.0` may become `0.05`.
  const shown = is === "string" ? toInput(text, format) : typed !== "" && Object.is(asNumber(typed), value) ? typed : text;
  const range = is === "string" ? "" : [minimum, maximum].map((bound) => bound ?? "").join(" – ");
  return (
    <Row props={props}>
      {(ids, faulty) => {
        const common = { id: ids.input, "aria-invalid": faulty, "aria-describedby": ids.help, required: props.required };
        if (isLong) return <textarea {...common} rows={4} value={text} onInput={(event) => put(event.currentTarget.value)} />;
        return (
          <input
            {...common}
            type={(is === "string" ? inputType(format) : "text") as "text"}
            inputMode={is === "string" ? undefined : is === "integer" ? "numeric" : "decimal"}
            placeholder={range === " – " ? "" : range}
            value={shown}
            onInput={(event) => put(event.currentTarget.value)}
          />
        );
      }}
    </Row>
  );
}

/** Two buttons: a box that is not ticked would not tell "no" from "not answered". */
export function YesNo(props: FieldProps) {
  const options = [
    { value: true, text: "Yes" },
    { value: false, text: "No" },
  ];
  return <Radios props={props} options={options} />;
}

export function ChoiceField(props: FieldProps & { options: Option[] }) {
  const { options, value, change, required } = props;
  if (options.length <= 4) return <Radios props={props} options={options} />;
  const current = options.findIndex((option) => JSON.stringify(option.value) === JSON.stringify(value));
  return (
    <Row props={props}>
      {(ids, faulty) => (
        <select
          id={ids.input}
          aria-invalid={faulty}
          aria-describedby={ids.help}
          required={required}
          value={String(current)}
          onChange={(event) => change(options[Number(event.currentTarget.value)]?.value)}
        >
          <option value="-1">{required ? "Choose…" : "none"}</option>
          {options.map(({ text }, index) => (
            <option key={index} value={String(index)}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Row>
  );
}

function Radios({ props, options }: { props: FieldProps; options: Option[] }) {
  const name = useId();
  const { label, required, value, change, faults, path, schema, root } = props;
  const description = resolve(schema, root).description;
  const fault = faults.find((item) => item.path === path);
  return (
    <fieldset class={`field radios ${fault ? "faulty" : ""}`} aria-describedby={`${name}-help`}>
      <legend>
        <bdi>{label}</bdi> {!required && <span class="quiet small">optional</span>}
      </legend>
      {description && <p class="hint">{description}</p>}
      <div class="segments">
        {options.map((option, index) => (
          <label key={index}>
            <input type="radio" name={name} checked={JSON.stringify(option.value) === JSON.stringify(value)} onChange={() => change(option.value)} />
            <span>
              <bdi>{option.text}</bdi>
            </span>
          </label>
        ))}
        {!required && value !== undefined && (
          <button type="button" class="bare small" onClick={() => change(undefined)}>
            clear
          </button>
        )}
      </div>
      <p class="fault" id={`${name}-help`}>
        {fault?.message}
      </p>
    </fieldset>
  );
}

/** Boxes for a list of some of these values. */
export function ChoicesField(props: FieldProps & { options: Option[] }) {
  const id = useId();
  const { options, label, required, value, change, faults, path, schema, root } = props;
  const description = resolve(schema, root).description;
  const fault = faults.find((item) => item.path === path);
  const chosen = new Set((Array.isArray(value) ? value : []).map((item: unknown) => JSON.stringify(item)));
  const has = (option: Option): boolean => chosen.has(JSON.stringify(option.value));
  const put = (option: Option, on: boolean): void => {
    const next = chosenAfter(options, value, option, on);
    change(next.length === 0 && !required ? undefined : next);
  };
  return (
    <fieldset class={`field ${fault ? "faulty" : ""}`} aria-describedby={id}>
      <legend>
        <bdi>{label}</bdi> {!required && <span class="quiet small">optional</span>}
      </legend>
      {description && <p class="hint">{description}</p>}
      <div class="boxes">
        {options.map((option, index) => (
          <label key={index}>
            <input type="checkbox" checked={has(option)} onChange={(event) => put(option, event.currentTarget.checked)} />
            <bdi>{option.text}</bdi>
          </label>
        ))}
      </div>
      <p class="fault" id={id}>
        {fault?.message}
      </p>
    </fieldset>
  );
}

export function ArrayField(props: FieldProps & { items: Schema }) {
  const { value, change, items, label, path, root, faults, required } = props;
  const list = Array.isArray(value) ? (value as unknown[]) : [];
  const replace = (next: unknown[]): void => change(next.length === 0 && !required ? undefined : next);
  const fault = faults.find((item) => item.path === path);
  const keys = useKeys(list.length);
  return (
    <fieldset class="group">
      <legend>
        <bdi>{label}</bdi> {!required && <span class="quiet small">optional</span>}
      </legend>
      {list.map((item, index) => (
        <div class="item" key={keys[index]}>
          <AnyField
            schema={items}
            root={root}
            value={item}
            change={(next) => replace(list.map((old, at) => (at === index ? next : old)))}
            path={`${path}[${index}]`}
            faults={faults}
            label={`${index + 1}`}
            required
          />
          <button type="button" class="bare small" onClick={() => (keys.splice(index, 1), replace(list.filter((_, at) => at !== index)))} aria-label={`Remove ${index + 1} of ${label}`}>
            remove
          </button>
        </div>
      ))}
      <button type="button" class="button" onClick={() => replace([...list, defaults(items, root)])}>
        Add
      </button>
      <p class="fault">{fault?.message}</p>
    </fieldset>
  );
}

/** Keys of the items of a list, which keep them when others before them are removed: their fields have states of their own. */
function useKeys(count: number): number[] {
  const keys = useRef<number[]>([]).current;
  const next = useRef(0);
  keys.splice(count);
  while (keys.length < count) keys.push(next.current++);
  return keys;
}

/** One of several forms. An optional one can be left out. */
export function VariantField(props: FieldProps & { variants: Schema[] }) {
  const { variants, root, value, change, label, required, schema } = props;
  const none = -1;
  const [chosen, setChosen] = useState(() => (value === undefined && !required ? none : variantOf(variants, value, root)));
  const id = useId();
  const variant = variants[chosen];
  const { description } = resolve(schema, root);
  const names = variants.map((each, index) => variantName(each, root, index));
  return (
    <fieldset class="group">
      <legend>
        <bdi>{label}</bdi> {!required && <span class="quiet small">optional</span>}
      </legend>
      {description && <p class="hint">{description}</p>}
      <div class="field">
        <label for={id}>Kind</label>
        <select
          id={id}
          value={String(chosen)}
          onChange={(event) => {
            const next = Number(event.currentTarget.value);
            const other = variants[next];
            setChosen(next);
            change(other && defaults(other, root));
          }}
        >
          {!required && <option value={String(none)}>none</option>}
          {names.map((name, index) => (
            <option key={name + String(index)} value={String(index)}>
              {name}
            </option>
          ))}
        </select>
      </div>
      {variant && <AnyField {...props} key={chosen} schema={variant} label={names[chosen] ?? label} required />}
    </fieldset>
  );
}

export function JsonField(props: FieldProps) {
  const { value, change } = props;
  const [text, setText] = useState(value === undefined ? "" : value instanceof Broken ? value.text : writeJson(value, 2));
  return (
    <Row props={props}>
      {(ids, faulty) => (
        <>
          <textarea
            id={ids.input}
            class="code"
            rows={4}
            value={text}
            placeholder="JSON"
            aria-invalid={faulty || value instanceof Broken}
            aria-describedby={ids.help}
            spellcheck={false}
            onInput={(event) => {
              setText(event.currentTarget.value);
              change(fromJson(event.currentTarget.value));
            }}
          />
          {!faulty && value instanceof Broken && <p class="fault">{value.why}</p>}
        </>
      )}
    </Row>
  );
}
