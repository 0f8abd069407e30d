import {
  type ArrowFunctionExpression,
  type BindingPattern,
  type Function as FunctionNode,
  type ParamPattern,
  parseSync,
  Visitor,
} from 'oxc-parser';

/** One mention of another module: `import`, `export from`, `import()`, `import type`, `import('x').T` or `require`. */
export interface ModuleRequest {
  /** As it is written, for instance `./tasks.ts` or `@servegym/openenv`. `undefined` when it is computed. */
  readonly specifier: string | undefined;
  /** Nothing of it is left at run time. */
  readonly isTypeOnly: boolean;
  /** The module is loaded when the code gets there, and not before the file runs. */
  readonly isLazy: boolean;
  /** Offset in the text, characters. */
  readonly offset: number;
}

/** One use of a name that the file does not bind itself and that is not a property's: `Date` in `new Date()`. */
export interface NameUse {
  readonly name: string;
  /** The property taken from it, as in `Math.random`; `undefined` when the name is used in any other way. */
  readonly property: string | undefined;
  /** The number of arguments in `new Name(...)`; `undefined` when the name is used in any other way. */
  readonly constructedWith: number | undefined;
  /** Offset in the text, characters. */
  readonly offset: number;
}

/** One exported name, or `export * from` without a name. Overloads repeat theirs. */
export interface Export {
  readonly name: string | undefined;
  /** The module it is passed on from. */
  readonly from: string | undefined;
}

export interface SourceFile {
  readonly requests: readonly ModuleRequest[];
  readonly names: readonly NameUse[];
  readonly exports: readonly Export[];
  /** Functions, methods and arrow functions, as offsets of their first character and behind their last. */
  readonly functions: readonly { readonly start: number; readonly end: number }[];
  /** The number of the line, from 1, that has the character at `offset`. */
  lineAt(offset: number): number;
}

/** Imports, free names, exports and functions of a TypeScript source. Throws when it does not parse. */
export function readSourceFile(path: string, text: string): SourceFile {
  const { program, errors, module } = parseSync(path, text);
  const first = errors[0];
  if (first) throw new SyntaxError(`${path}: ${first.message}`);

  const requests: ModuleRequest[] = [];
  const names: NameUse[] = [];
  const functions: { start: number; end: number }[] = [];
  const bound = new Set<string>();
  const propertyNames = new Set<object>();
  const takenProperty = new Map<object, string>();
  const constructedWith = new Map<object, number>();

  const request = (offset: number, specifier: string | undefined, isTypeOnly = false, isLazy = false) => {
    requests.push({ specifier, isTypeOnly, isLazy, offset });
  };
  const enterFunction = (node: FunctionNode | ArrowFunctionExpression) => {
    functions.push(node);
    for (const parameter of node.params) bind(parameter, bound);
  };
  const enterMember = (node: { readonly computed: boolean; readonly key: object }) => {
    if (!node.computed) propertyNames.add(node.key);
  };
  new Visitor({
    ImportDeclaration(node) {
      const named = node.specifiers;
      for (const each of named) bound.add(each.local.name);
      const isTypeOnly =
        node.importKind === 'type' ||
        (named.length > 0 &&
          named.every((each) => each.type === 'ImportSpecifier' && each.importKind === 'type'));
      request(node.start, node.source.value, isTypeOnly);
    },
    ExportNamedDeclaration(node) {
      if (!node.source) return;
      const named = node.specifiers;
      const isTypeOnly =
        node.exportKind === 'type' || (named.length > 0 && named.every((each) => each.exportKind === 'type'));
      request(node.start, node.source.value, isTypeOnly);
    },
    ExportAllDeclaration: (node) => request(node.start, node.source.value, node.exportKind === 'type'),
    ImportExpression(node) {
      const { source } = node;
      const isText = source.type === 'Literal' && typeof source.value === 'string';
      request(node.start, isText ? source.value : undefined, false, true);
    },
    TSImportType: (node) => request(node.start, node.source.value, true),
    TSExternalModuleReference: (node) => request(node.start, node.expression.value),
    MemberExpression(node) {
      if (node.computed) return;
      propertyNames.add(node.property);
      if (node.object.type === 'Identifier') takenProperty.set(node.object, node.property.name);
    },
    VariableDeclarator: (node) => bind(node.id, bound),
    FunctionDeclaration: enterFunction,
    FunctionExpression: enterFunction,
    ArrowFunctionExpression: enterFunction,
    NewExpression: (node) => constructedWith.set(node.callee, node.arguments.length),
    Property(node) {
      if (!node.shorthand) enterMember(node);
    },
    PropertyDefinition: enterMember,
    MethodDefinition: enterMember,
    TSPropertySignature: enterMember,
    TSMethodSignature: enterMember,
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
    exports: module.staticExports.flatMap(({ entries }) =>
      entries.map(({ exportName, moduleRequest }) => ({
        name: exportName.kind === 'Default' ? 'default' : (exportName.name ?? undefined),
        from: moduleRequest?.value,
      })),
    ),
    functions,
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
