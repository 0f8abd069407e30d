import { type BindingPattern, type ParamPattern, parseSync, Visitor } from 'oxc-parser';

/** One mention of another module: `import`, `export from`, `import()`, `import type`, `import('x').T` or `require`. */
export interface ModuleRequest {
  /** As it is written, for instance `./tasks.ts` or `@servegym/openenv`. `undefined` when it is computed. */
  readonly specifier: string | undefined;
  /** Whether nothing is left of it at run time. */
  readonly isTypeOnly: boolean;
  /** Whether the module is loaded when the code gets there, and not before the file runs. */
  readonly isLazy: boolean;
  /** Where it begins in the text, characters. */
  readonly offset: number;
}

/** One use of a name that the file does not bind itself and that is not a property's: `Date` in `new Date()`. */
export interface NameUse {
  readonly name: string;
  /** The property taken from it, as in `Math.random`; `undefined` when the name is used in any other way. */
  readonly property: string | undefined;
  /** The number of arguments in `new Name(...)`; `undefined` when the name is used in any other way. */
  readonly constructedWith: number | undefined;
  /** Where it begins in the text, characters. */
  readonly offset: number;
}

export interface SourceFile {
  readonly requests: readonly ModuleRequest[];
  readonly names: readonly NameUse[];
  /** The number of the line, from 1, that has the character at `offset`. */
  lineAt(offset: number): number;
}

/** Reads what a TypeScript source asks of other modules and of its surroundings. Throws when it does not parse. */
export function readSourceFile(path: string, text: string): SourceFile {
  const { program, errors } = parseSync(path, text);
  const first = errors[0];
  if (first) throw new SyntaxError(`${path}: ${first.message}`);

  const requests: ModuleRequest[] = [];
  const names: NameUse[] = [];
  const bound = new Set<string>();
  const propertyNames = new Set<object>();
  const takenProperty = new Map<object, string>();
  const constructedWith = new Map<object, number>();

  new Visitor({
    ImportDeclaration(node) {
      const named = node.specifiers;
      for (const each of named) bound.add(each.local.name);
      const isTypeOnly =
        node.importKind === 'type' ||
        (named.length > 0 &&
          named.every((each) => each.type === 'ImportSpecifier' && each.importKind === 'type'));
      requests.push({ specifier: node.source.value, isTypeOnly, isLazy: false, offset: node.start });
    },
    ExportNamedDeclaration(node) {
      if (!node.source) return;
      const named = node.specifiers;
      const isTypeOnly =
        node.exportKind === 'type' || (named.length > 0 && named.every((each) => each.exportKind === 'type'));
      requests.push({ specifier: node.source.value, isTypeOnly, isLazy: false, offset: node.start });
    },
    ExportAllDeclaration(node) {
      requests.push({
        specifier: node.source.value,
        isTypeOnly: node.exportKind === 'type',
        isLazy: false,
        offset: node.start,
      });
    },
    ImportExpression(node) {
      const { source } = node;
      const specifier =
        source.type === 'Literal' && typeof source.value === 'string' ? source.value : undefined;
      requests.push({ specifier, isTypeOnly: false, isLazy: true, offset: node.start });
    },
    TSImportType(node) {
      requests.push({ specifier: node.source.value, isTypeOnly: true, isLazy: false, offset: node.start });
    },
    TSExternalModuleReference(node) {
      requests.push({
        ...{ specifier: node.expression.value, isTypeOnly: false, isLazy: false, offset: node.start },
      });
    },
    MemberExpression(node) {
      if (node.computed) return;
      propertyNames.add(node.property);
      if (node.object.type === 'Identifier') takenProperty.set(node.object, node.property.name);
    },
    VariableDeclarator(node) {
      bind(node.id, bound);
    },
    FunctionDeclaration(node) {
      for (const parameter of node.params) bind(parameter, bound);
    },
    FunctionExpression(node) {
      for (const parameter of node.params) bind(parameter, bound);
    },
    ArrowFunctionExpression(node) {
      for (const parameter of node.params) bind(parameter, bound);
    },
    NewExpression(node) {
      constructedWith.set(node.callee, node.arguments.length);
    },
    Property(node) {
      if (!node.computed && !node.shorthand) propertyNames.add(node.key);
    },
    PropertyDefinition(node) {
      if (!node.computed) propertyNames.add(node.key);
    },
    MethodDefinition(node) {
      if (!node.computed) propertyNames.add(node.key);
    },
    TSPropertySignature(node) {
      if (!node.computed) propertyNames.add(node.key);
    },
    TSMethodSignature(node) {
      if (!node.computed) propertyNames.add(node.key);
    },
    Identifier(node) {
      if (propertyNames.has(node)) return;
      names.push({
        name: node.name,
        property: takenProperty.get(node),
        constructedWith: constructedWith.get(node),
        offset: node.start,
      });
    },
  }).visit(program);
  return {
    requests,
    names: names.filter(({ name }) => !bound.has(name)),
    lineAt: (offset) => text.slice(0, offset).split('\n').length,
  };
}

/** Adds the names that a variable or parameter binds. */
function bind(pattern: BindingPattern | ParamPattern, bound: Set<string>): void {
  switch (pattern.type) {
    case 'Identifier':
      bound.add(pattern.name);
      break;
    case 'AssignmentPattern':
      bind(pattern.left, bound);
      break;
    case 'RestElement':
      bind(pattern.argument, bound);
      break;
    case 'ArrayPattern':
      for (const element of pattern.elements) if (element) bind(element, bound);
      break;
    case 'ObjectPattern':
      for (const each of pattern.properties) bind(each.type === 'Property' ? each.value : each, bound);
      break;
  }
}
