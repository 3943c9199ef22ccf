/**
 * Which file may import what: reads imports from TypeScript sources and compares with a table.
 *
 * Imports are taken from the compiler's own syntax tree, so that comments, strings and line breaks
 * cannot hide or fake one. The table itself is in architecture.test.ts.
 */
import { posix } from 'node:path';
import ts from 'typescript';

export interface FoundImport {
  /** As written; undefined for a dynamic import whose target is not a plain string. */
  readonly specifier: string | undefined;
  readonly isTypeOnly: boolean;
  /** From 1. */
  readonly line: number;
}

export interface Layer {
  /** A folder (all files below) or one file, from the root of the repository. */
  readonly path: string;
  /** Layers it may import from; its own files always. */
  readonly imports: readonly string[];
  /** Layers of which it may import types. */
  readonly types?: readonly string[];
  /** Those of Node's own modules that it may import; a pure layer has none. */
  readonly node: readonly string[] | 'any';
}

export interface Rules {
  readonly layers: readonly Layer[];
  /** Package name to the folder or file where the only file that may import it lives. */
  readonly doors: Readonly<Record<string, string>>;
  /** Packages whose door is the whole folder. */
  readonly wideDoors?: readonly string[];
}

/** All imports of one file: import, export from, import(), import types and require(). */
export function readImports(path: string, text: string): readonly FoundImport[] {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const found: FoundImport[] = [];
  const visit = (node: ts.Node): void => {
    const target = importTarget(node);
    if (target !== undefined) {
      found.push({
        specifier: ts.isStringLiteralLike(target.from) ? target.from.text : undefined,
        isTypeOnly: target.isTypeOnly,
        line: source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1,
      });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function importTarget(
  node: ts.Node,
): { readonly from: ts.Node; readonly isTypeOnly: boolean } | undefined {
  if (ts.isImportDeclaration(node)) {
    return { from: node.moduleSpecifier, isTypeOnly: isTypeClause(node.importClause) };
  }
  if (ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined) {
    return { from: node.moduleSpecifier, isTypeOnly: node.isTypeOnly };
  }
  if (ts.isImportTypeNode(node)) {
    const { argument } = node;
    return { from: ts.isLiteralTypeNode(argument) ? argument.literal : argument, isTypeOnly: true };
  }
  if (ts.isExternalModuleReference(node)) return { from: node.expression, isTypeOnly: false };
  if (ts.isCallExpression(node) && isImportCall(node)) {
    return { from: node.arguments[0] ?? node, isTypeOnly: false };
  }
  return undefined;
}

function isImportCall(node: ts.CallExpression): boolean {
  const callee = node.expression;
  return (
    callee.kind === ts.SyntaxKind.ImportKeyword ||
    (ts.isIdentifier(callee) && callee.text === 'require')
  );
}

/** `import type …`, or a list of which every name is a type. */
function isTypeClause(clause: ts.ImportClause | undefined): boolean {
  if (clause === undefined) return false;
  if (clause.phaseModifier === ts.SyntaxKind.TypeKeyword) return true;
  const names = clause.namedBindings;
  return (
    clause.name === undefined &&
    names !== undefined &&
    ts.isNamedImports(names) &&
    names.elements.length > 0 &&
    names.elements.every((element) => element.isTypeOnly)
  );
}

/**
 * Compares sources (path from the root to text) with the rules.
 *
 * @returns one sentence for each violation, none when all is well
 */
export function checkImports(sources: ReadonlyMap<string, string>, rules: Rules): string[] {
  const violations: string[] = [];
  const users = new Map<string, Set<string>>();
  for (const [path, text] of sources) {
    const layer = layerOf(path, rules.layers);
    if (layer === undefined) {
      violations.push(`${path}: is in no layer of the table`);
      continue;
    }
    for (const found of readImports(path, text)) {
      const complaint = complain(path, layer, found, rules);
      if (complaint !== undefined) violations.push(`${path}:${found.line}: ${complaint}`);
      const name = packageOf(found.specifier);
      if (name !== undefined) users.set(name, (users.get(name) ?? new Set()).add(path));
    }
  }
  for (const [name, paths] of users) {
    if (paths.size > 1 && !(rules.wideDoors ?? []).includes(name))
      violations.push(`${name}: has several doors: ${[...paths].join(', ')}`);
  }
  return violations;
}

function complain(
  path: string,
  layer: Layer,
  { specifier, isTypeOnly }: FoundImport,
  rules: Rules,
): string | undefined {
  if (specifier === undefined) return 'imports something that only running it would tell';
  if (specifier.startsWith('node:')) {
    if (layer.node === 'any' || layer.node.includes(specifier)) return undefined;
    return `imports ${specifier}, which ${layer.path} may not`;
  }
  const name = packageOf(specifier);
  if (name !== undefined) {
    const door = Object.hasOwn(rules.doors, name) ? rules.doors[name] : undefined;
    if (door === undefined) return `imports ${specifier}, a package that has no door`;
    return isWithin(path, door) ? undefined : `imports ${specifier}, whose door is ${door}`;
  }
  const target = posix.join(posix.dirname(path), specifier).replace(/\.js$/, '.ts');
  const targetLayer = layerOf(target, rules.layers);
  if (targetLayer === undefined) return `imports ${target}, which is in no layer of the table`;
  if (targetLayer === layer || layer.imports.includes(targetLayer.path)) return undefined;
  if (layer.types?.includes(targetLayer.path) === true) {
    return isTypeOnly ? undefined : `imports more than types from ${targetLayer.path}`;
  }
  return `${layer.path} may not import from ${targetLayer.path}`;
}

/** `@scope/name/deep` → `@scope/name`; undefined for Node's modules and relative paths. */
function packageOf(specifier: string | undefined): string | undefined {
  if (specifier === undefined || /^(?:node:|\.|\/)/.test(specifier)) return undefined;
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

function layerOf(path: string, layers: readonly Layer[]): Layer | undefined {
  return layers.find((layer) => isWithin(path, layer.path));
}

function isWithin(path: string, folderOrFile: string): boolean {
  return path === folderOrFile || path.startsWith(`${folderOrFile}/`);
}
