/**
 * What the cases of checkConf() are made of, and how the lines of a fix are put in.
 *
 * Not here: the cases (check-zone-cases.ts, check-rule-cases.ts) and what is asked of them
 * (check-conf.test.ts).
 */
import assert from 'node:assert/strict';
import type { NginxConf } from '../../parsers/conf/model.js';
import { parseConf } from '../../parsers/conf/read-conf.js';
import type { CheckCode } from '../../src/check/codes.js';
import type { Finding, Severity } from '../../src/check/finding.js';
import type { CheckOptions } from '../../src/check/survey.js';

export interface Case {
  readonly code: CheckCode;
  readonly severity: Severity;
  /** The inside of `http`. */
  readonly bad: string;
  /** The same without the fault. */
  readonly good: string;
  /** What the message must say. */
  readonly says: RegExp;
  readonly options?: CheckOptions;
}

export const BY_ADDRESS = 'limit_req_zone $binary_remote_addr zone=a:10m rate=10r/s;';

/** A server that listens where everyone can come, with these lines in it. */
export function server(...lines: readonly string[]): string {
  return ['server {', 'listen 18080;', 'server_name a.example;', ...lines, '}'].join('\n');
}

export function http(...lines: readonly string[]): string {
  return lines.join('\n');
}

export function keyed(key: string, mark = ''): string {
  return http(
    `limit_req_zone ${key} zone=k:10m rate=10r/s; ${mark}`,
    server('limit_req zone=k burst=5;'),
  );
}

export function limited(...lines: readonly string[]): string {
  return http(BY_ADDRESS, server(...lines));
}

export const FULL_FIELDS =
  '$msec $request_time $status $limit_req_status $limit_conn_status "$request" $server_name ' +
  '$server_port $remote_addr $connection $connection_requests $pid "$upstream_status" "$upstream_response_time"';

/** A whole configuration, its `http` beginning in the first line after `events`. */
export function complete(inside: string): string {
  return `events {}\nhttp {\n${inside}\n}\n`;
}

export function read(text: string): NginxConf {
  return parseConf('nginx.conf', {
    read: (path) => (path === 'nginx.conf' ? text : undefined),
    glob: () => [],
  });
}

/** Puts the lines of a fix where their comments say. */
export function applyFix(text: string, found: Finding): string {
  const lines = text.split('\n');
  const place = (line: string): number => Number(/nginx\.conf:(\d+)/.exec(line)?.[1]) - 1;
  const added = new Map<number, string[]>();
  const add = (at: number, line: string): void => {
    added.set(at, [...(added.get(at) ?? []), line]);
  };
  for (const line of found.fix?.split('\n') ?? []) {
    const [, how = ''] = /# (.*)$/.exec(line) ?? [];
    if (how.startsWith('in http')) add(lines.indexOf('http {'), line);
    else if (how.startsWith('in server')) add(found.where!.line - 1, line);
    else if (how.startsWith('beside ')) add(place(how), line);
    else if (how.startsWith('instead of nginx.conf:')) lines[place(how)] = line;
    else if (how.startsWith('instead of ')) {
      const directive = how.slice('instead of '.length).replace(/;.*/, '');
      const at = lines.findIndex((each) => each.startsWith(`${directive};`));
      assert.notEqual(at, -1, `nothing to put instead of: ${line}`);
      lines[at] = line;
    } else assert.fail(`no place for: ${line}`);
  }
  return lines.flatMap((line, i) => [line, ...(added.get(i) ?? [])]).join('\n');
}
