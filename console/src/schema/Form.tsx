import { useId, useState } from "preact/hooks";
import { hasParts } from "../lib/json.ts";
import { choicesOf, defaults, fieldsOf, isNullable, resolve, type Schema, shapeOf } from "./schema.ts";
import { ArrayField, ChoiceField, ChoicesField, JsonField, TextField, VariantField, YesNo } from "./fields.tsx";
import type { Fault } from "./validate.ts";

export interface FieldProps {
  schema: Schema;
  root: Schema;
  value: unknown;
  change: (value: unknown) => void;
  path: string;
  faults: Fault[];
  label: string;
  required: boolean;
}

/** The fields of a schema. A value that no field can show has a JSON editor in its place. */
export function SchemaFields(props: Omit<FieldProps, "root" | "path" | "label" | "required"> & { root?: Schema }) {
  const root = props.root ?? props.schema;
  const shape = shapeOf(props.schema, root);
  if (shape.is !== "object") return <AnyField {...props} root={root} path="" label="Value" required />;
  return <Fields {...props} root={root} path="" label="" required />;
}

function Fields({ schema, root, value, change, path, faults }: FieldProps) {
  const record = (hasParts(value) && !Array.isArray(value) ? value : {}) as Record<string, unknown>;
  return (
    <>
      {fieldsOf(resolve(schema, root)).map((field) => (
        <AnyField
          key={field.name}
          schema={field.schema}
          root={root}
          value={record[field.name]}
          change={(next) => {
            const copy = { ...record };
            if (next === undefined) delete copy[field.name];
            else copy[field.name] = next;
            change(copy);
          }}
          path={path ? `${path}.${field.name}` : field.name}
          faults={faults}
          label={resolve(field.schema, root).title ?? field.name}
          required={field.required}
        />
      ))}
    </>
  );
}

export function AnyField(props: FieldProps) {
  const shape = shapeOf(props.schema, props.root);
  const { is } = shape;
  if (is === "object") return <ObjectField {...props} />;
  const choices = is === "array" && choicesOf(shape.items, props.root, props.value);
  if (choices) return <ChoicesField {...props} options={choices} />;
  if (is === "array") return <ArrayField {...props} items={shape.items} />;
  if (is === "variants") return <VariantField {...props} variants={shape.variants} />;
  // Of one value there is nothing to choose.
  if (is === "choice" && props.required && shape.options.length === 1 && shape.options[0]?.value === props.value) return null;
  if (is === "choice") return <ChoiceField {...props} options={shape.options} />;
  if (is === "boolean") return <YesNo {...props} />;
  if (is === "json") return <JsonField {...props} />;
  return <TextField {...props} is={is} />;
}

/** A nested object. An optional one is left out until it is wanted, and one that may be null is null. */
function ObjectField(props: FieldProps) {
  const id = useId();
  const { value, required, change, schema, root, label, path, faults } = props;
  const none = required ? null : undefined;
  const canBeLeft = !required || isNullable(schema, root);
  const [wanted, setWanted] = useState(!canBeLeft || (value !== undefined && value !== null));
  const description = resolve(schema, root).description;
  return (
    <fieldset class="group" aria-describedby={description ? id : undefined}>
      <legend>
        <bdi>{label}</bdi>
        {canBeLeft && (
          <label class="inline">
            <input
              type="checkbox"
              checked={wanted}
              onChange={(event) => {
                const on = event.currentTarget.checked;
                setWanted(on);
                change(on ? (defaults(schema, root) ?? {}) : none);
              }}
            />{" "}
            given
          </label>
        )}
      </legend>
      {description && (
        <p class="hint" id={id}>
          {description}
        </p>
      )}
      {wanted && <Fields {...props} />}
      <p class="fault">{faults.find((fault) => fault.path === path)?.message}</p>
    </fieldset>
  );
}
