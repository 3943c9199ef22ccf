/**
 * The page's files, read once: markup and styles from dashboards/page/static, the compiled modules
 * beside them, and uPlot from its package.
 *
 * Every path is one of a list that is made here, so that a request names no file. Nothing comes from
 * another host, and the Content-Security-Policy lets nothing come.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DASHBOARDS } from '../../dashboards/catalogue/dashboards.js';
import type { Handler, Route } from '../http/route.js';
import { pageName } from './catalogue-answer.js';

const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "form-action 'none'",
].join('; ');

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
};

interface Asset {
  readonly path: string;
  readonly type: string;
  readonly body: Buffer;
  readonly tag: string;
}

/** Routes of the page and all that it loads. @throws Error when a build is not complete */
export function assetRoutes(): Route[] {
  const here = dirname(fileURLToPath(import.meta.url));
  const fixed = join(rootAbove(here), 'dashboards/page/static');
  const compiled = join(here, '../../dashboards/page');
  const chart = dirname(createRequire(import.meta.url).resolve('uplot'));
  const modules = readdirSync(compiled).filter((name) => name.endsWith('.js'));
  const files: readonly (readonly [path: string, file: string])[] = [
    ...['/', '/example', ...DASHBOARDS.map(({ id }) => `/${pageName(id)}`)].map(
      (path) => [path, join(fixed, 'index.html')] as const,
    ),
    ['/static/page.css', join(fixed, 'page.css')],
    ['/favicon.svg', join(fixed, 'favicon.svg')],
    ['/static/uPlot.js', join(chart, 'uPlot.iife.min.js')],
    ['/static/uPlot.css', join(chart, 'uPlot.min.css')],
    ...modules.map((name) => [`/static/${name}`, join(compiled, name)] as const),
  ];
  return files.map(([path, file]) => {
    const body = readFileSync(file);
    return routeOf(assetOf(path, file, file.endsWith('.html') ? preloading(body, modules) : body));
  });
}

/** Names all modules in the page's head: else each is asked for when the one before has come. */
function preloading(html: Buffer, modules: readonly string[]): Buffer {
  const links = modules.map((name) => `<link rel="modulepreload" href="static/${name}" />`);
  return Buffer.from(html.toString().replace('</head>', `${links.join('')}</head>`));
}

/** The folder with package.json, wherever the compiled files were built to. */
function rootAbove(folder: string): string {
  return existsSync(join(folder, 'package.json')) ? folder : rootAbove(dirname(folder));
}

function assetOf(path: string, file: string, body: Buffer): Asset {
  const tag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  return { path, type: TYPES[/\w+$/.exec(file)![0]]!, body, tag };
}

function routeOf(asset: Asset): Route {
  const headers = {
    'Content-Security-Policy': PAGE_POLICY,
    'Cross-Origin-Opener-Policy': 'same-origin',
    // Asked for again each time, and answered with 304: a new version is seen at once.
    'Cache-Control': 'no-cache',
    ETag: asset.tag,
  };
  const handle: Handler = (request, response) => {
    if (request.headers['if-none-match'] !== asset.tag) {
      return { type: asset.type, body: asset.body, headers };
    }
    response.writeHead(304, headers).end();
    return undefined;
  };
  return { path: asset.path, handle };
}
