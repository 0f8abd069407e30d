/** Classes of OpenEnv, with the fields that they bring. */
const BASES = {
  Action: ['metadata'],
  Observation: ['metadata', 'reward', 'done'],
  State: ['episode_id', 'step_count'],
} as const satisfies Record<string, readonly string[]>;

type Schema = Readonly<Record<string, unknown>>;

/** A pydantic class with the fields of a published schema. */
export function pydanticClass(schema: Schema, base: keyof typeof BASES): string {
  const inherited: readonly string[] = BASES[base];
  const required = new Set((schema.required ?? []) as string[]);
  const fields = Object.entries((schema.properties ?? {}) as Record<string, Schema>)
    .filter(([name]) => !inherited.includes(name))
    .map(
      ([name, field]) =>
        `    ${name}: ${annotation(field, { isRequired: required.has(name), isBounded: base === 'Action' })}\n`,
    );
  const doc = schema.description === undefined ? '' : `    """${schema.description}."""\n\n`;
  return `class ${schema.title}(${base}):\n${doc}${fields.join('') || '    pass\n'}`;
}

/** Type and options of a field, as in `float = Field(ge=0, description="...")`. Bounds are for those who send it. */
function annotation(
  field: Schema,
  { isRequired, isBounded }: { readonly isRequired: boolean; readonly isBounded: boolean },
): string {
  const { default: initial = isRequired ? undefined : null, minimum, maximum, description } = field;
  const type = pythonType(field);
  const isOptional = initial === null && !type.endsWith(' | None');
  const options = [
    ...(initial === undefined ? [] : [`default=${literal(initial)}`]),
    ...(isBounded && typeof minimum === 'number' ? [`ge=${minimum}`] : []),
    ...(isBounded && typeof maximum === 'number' ? [`le=${maximum}`] : []),
    ...(description === undefined ? [] : [`description=${literal(description)}`]),
  ];
  const annotated = isOptional ? `${type} | None` : type;
  return options.length === 0 ? annotated : `${annotated} = Field(${options.join(', ')})`;
}

const TYPES: Readonly<Record<string, string>> = {
  boolean: 'bool',
  integer: 'int',
  null: 'None',
  number: 'float',
  object: 'dict[str, Any]',
  string: 'str',
};

function pythonType({ type, enum: values, anyOf, items }: Schema): string {
  if (Array.isArray(values)) return `Literal[${values.map(literal).join(', ')}]`;
  if (Array.isArray(anyOf)) return anyOf.map(pythonType).join(' | ');
  if (type === 'array') return `list[${items ? pythonType(items as Schema) : 'Any'}]`;
  return TYPES[String(type)] ?? 'Any';
}

/** A value as Python writes it; of strings and numbers, JSON's text is Python's too. */
function literal(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return value === null ? 'None' : JSON.stringify(value);
}
