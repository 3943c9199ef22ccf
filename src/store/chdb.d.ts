/**
 * The one function of chdb that limitlens calls. Declared here because the package is optional:
 * without it, limitlens must still compile.
 */
declare module 'chdb/connection' {
  export function createChdbConnection(options: { path: string }): object;
}
