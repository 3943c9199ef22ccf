/**
 * limitlens.yaml: what it takes, what it refuses and where it says so, and what beats it.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse } from 'yaml';
import { applyConfig, type CommandLike } from '../src/commands/config-options.js';
import { CONFIG_KEYS } from '../src/config/config-keys.js';
import { configSchema } from '../src/config/config-schema.js';
import { readConfig } from '../src/config/read-config.js';
import { InputError } from '../src/errors.js';
import { runCli } from './support/cli.js';
import { makeTempDir } from './support/temp-dir.js';
import { traceDir } from './support/truth.js';

const SAMPLE = 'samples/service/limitlens.yaml';

function fileOf(t: TestContext, text: string): string {
  const path = join(makeTempDir(t), 'limitlens.yaml');
  writeFileSync(path, text);
  return path;
}

/** What is said of a file, each line without the folder. */
function refusal(t: TestContext, text: string): string[] {
  const path = fileOf(t, text);
  try {
    readConfig(path);
  } catch (error) {
    assert.ok(error instanceof InputError, String(error));
    assert.equal(error.exitCode, 78);
    return error.message.split('\n').map((line) => line.replace(path, 'F'));
  }
  throw new assert.AssertionError({ message: `accepted: ${text}` });
}

/** A command of which some options have been given. */
class GivenOptions implements CommandLike {
  readonly set = new Map<string, unknown>();
  readonly #given: readonly string[];
  readonly options = CONFIG_KEYS.filter(({ option }) => option !== 'files').map((key) => ({
    long: `--${key.option}`,
    attributeName: () => key.option,
    parseArg: ['paths', 'texts', 'values'].includes(key.kind)
      ? (value: string, previous: readonly string[]) => [...previous, value]
      : undefined,
  }));

  constructor(...given: string[]) {
    this.#given = given;
  }

  getOptionValueSource(name: string): string {
    return this.#given.includes(name) ? 'cli' : 'default';
  }

  setOptionValueWithSource(name: string, value: unknown, source: string): void {
    assert.equal(source, 'config');
    this.set.set(name, value);
  }
}

test('the schema in samples is the one that files are held against', () => {
  const written = JSON.parse(readFileSync('samples/limitlens.schema.json', 'utf8')) as unknown;
  assert.deepEqual(written, configSchema(), 'run: npm run schema');
});

test('the schema is valid by the draft that it names', () => {
  const ajv = new Ajv2020({ allowUnionTypes: true });
  assert.equal(ajv.validateSchema(configSchema()), true);
});

test('every key is known once, and has its option in limitlens tail', async () => {
  const paths = CONFIG_KEYS.map(({ path }) => path);
  assert.equal(new Set(paths).size, paths.length);
  const { stdout } = await runCli(['tail', '--help']);
  for (const { option } of CONFIG_KEYS) {
    if (option !== 'files') assert.match(stdout, new RegExp(`--${option}[ ,]`));
  }
});

test('every option of limitlens tail can be given in the file', async () => {
  const { stdout } = await runCli(['tail', '--help']);
  const known = new Set(['config', 'help', ...CONFIG_KEYS.map(({ option }) => option)]);
  const options = [...stdout.matchAll(/^ {2}(?:-\w, )?--([\w-]+)/gm)].map((match) => match[1]!);
  assert.ok(options.length > 10);
  assert.deepEqual(
    options.filter((name) => !known.has(name)),
    [],
  );
});

test('the sample is accepted, and so is everything that it has as comments', (t) => {
  readConfig(SAMPLE);
  const text = readFileSync(SAMPLE, 'utf8');
  const sections = text.split('\n\n').slice(1).join('\n\n');
  const whole = sections.replaceAll(/^( *)# ?(\w+:(?: .*)?)$/gm, '$1$2');
  assert.notEqual(whole, sections);
  const found = readConfig(fileOf(t, whole)).map(({ key }) => key.path);
  const missing = CONFIG_KEYS.map(({ path }) => path).filter((path) => !found.includes(path));
  assert.deepEqual(missing, ['logs.format', 'logs.all', 'store.cluster', 'store.database']);
});

test('values come as on the command line, paths from the folder of the file', (t) => {
  const path = fileOf(
    t,
    [
      'nginx: {conf: conf/nginx.conf, instance: web-1}',
      'logs: {access: [a.log, /var/b.log, "-"], lateness: 5, all: true}',
      'store: {retention: {keys: 30d, samples: forever}}',
      'http:',
      '',
    ].join('\n'),
  );
  const folder = path.slice(0, path.lastIndexOf('/'));
  const read = readConfig(path).map(({ key, values }) => [key.option, values]);
  assert.deepEqual(read, [
    ['conf', [`${folder}/conf/nginx.conf`]],
    ['instance', ['web-1']],
    ['files', [`${folder}/a.log`, '/var/b.log', '-']],
    ['lateness', ['5']],
    ['all-logs', ['true']],
    ['retention', ['keys=30d', 'samples=forever']],
  ]);
});

const REFUSED: readonly (readonly [string, ...string[]])[] = [
  [
    'nginx:\n  instnce: web\n',
    'F:2:3: nginx.instnce: unknown key; did you mean instance? nginx has conf, instance',
  ],
  [
    'logs: {lateness: soon}',
    'F:1:18: logs.lateness: expected a duration like 60s, 500ms or 2m, found "soon"',
  ],
  ['logs: {all: 1}', 'F:1:13: logs.all: expected true or false, found 1'],
  [
    'logs:\n  access:\n    - a.log\n    - {b: 1}\n',
    'F:4:7: logs.access: expected a path, or a list of paths, found {"b":1}',
  ],
  [
    'store: {retention: {keys: 90}}',
    'F:1:27: store.retention.keys: expected days like 90d, or forever, found 90',
  ],
  [
    'store: {retention: {key: 90d}}',
    'F:1:21: store.retention.key: unknown key; did you mean keys? store.retention has aggregates, keys, samples',
  ],
  ['nginx: {instance: ""}', 'F:1:19: nginx.instance: expected a text, found ""'],
  ['- a\n', /^F:1:1: the file: expected a section with nginx, logs, store/.source],
  ['nginx:\n  conf: a\n  conf: b\n', 'F:3:3: not YAML: Map keys must be unique'],
  ['nginx:\n  conf: "a\n', /^F:3:1: not YAML: Missing closing "quote/.source],
  ['nginx: &a {conf: x}\nlogs: *a\n', 'F:2:7: aliases are not taken: write the value again'],
  ['nginx: {conf: !file x}\n', /^F:1:15: not YAML: Unresolved tag/.source],
  ['a: 1\n---\nb: 2\n', /^F:2:1: not YAML: /.source],
  ['"x\\e[31m": 1\n', /^F:1:1: "x\\u001b\[31m": unknown key/.source],
];

for (const [text, ...expected] of REFUSED) {
  test(`refused: ${JSON.stringify(text)}`, (t) => {
    const said = refusal(t, text);
    for (const [i, line] of expected.entries()) {
      if (line.startsWith('^')) assert.match(said[i]!, new RegExp(line));
      else assert.equal(said[i], line);
    }
    assert.equal(said.length, expected.length, said.join('\n'));
  });
}

test('all problems of a file are told, in its order', (t) => {
  const said = refusal(t, 'zz: 1\nhttp: {listen: 3}\nlogs: {all: x}\n');
  assert.deepEqual(
    said.map((line) => line.split(' ')[0]),
    ['F:1:1:', 'F:2:16:', 'F:3:13:'],
  );
});

test('a password in the URL is refused, and not shown', (t) => {
  const [said] = refusal(t, 'store: {clickhouse: "http://u:geheim@h:8123"}');
  assert.match(said!, /F:1:21: store\.clickhouse: expected a URL .*password_file/);
  assert.doesNotMatch(said!, /geheim/);
});

test('what is given beats the file, with all that it stands in place of', (t) => {
  const path = fileOf(t, 'store: {folder: s, commit_interval: 1s}\nlogs: {access: a.log}\n');
  const plain = new GivenOptions();
  assert.equal(applyConfig(plain, path, []).length, 1);
  assert.deepEqual([...plain.set.keys()], ['store', 'commit-interval']);
  const given = new GivenOptions('clickhouse', 'commit-interval');
  assert.deepEqual(applyConfig(given, path, ['b.log']), ['b.log']);
  assert.deepEqual([...given.set.keys()], []);
});

test('limitlens check --config: good, or 78 with what is wrong', async (t) => {
  const conf = join(traceDir('e_two_zones'), 'nginx.conf');
  const site = parse(readFileSync(SAMPLE, 'utf8')) as Record<string, Record<string, unknown>>;
  const check = async (changed: Record<string, Record<string, unknown>>) => {
    const path = fileOf(t, JSON.stringify({ ...site, nginx: { conf }, ...changed }));
    const run = await runCli(['check', '--config', path]);
    return { ...run, stderr: run.stderr.replaceAll(path, 'F') };
  };
  const good = await check({});
  assert.equal(good.code, 0, good.stderr);
  assert.match(good.stdout, /limitlens\.yaml: good/);
  const cases = [
    [{ nginx: { conf: '/nowhere/nginx.conf' } }, /nowhere\/nginx\.conf: no such file/],
    [{ nginx: {} }, /expected --conf FILE/],
    [{ logs: { timezone: 'Europe/Berlln' } }, /no such time zone/],
    [{ http: { listen: 'nonsense' } }, /expected an address and port/],
    [{ store: { folder: 's', clickhouse: 'http://h' } }, /either --store or --clickhouse/],
    [{ store: { clickhouse: 'http://h', password_file: '/nowhere' } }, /cannot be read \(ENOENT\)/],
    [{ logs: { access: ['/nowhere/other.txt'] } }, /other\.txt: expected a log/],
    [{ stor: {} }, /F:1:\d+: stor: unknown key; did you mean store/],
  ] as const;
  for (const [changed, said] of cases) {
    const run = await check(changed);
    assert.equal(run.code, 78, run.stderr);
    assert.match(run.stderr, said);
    assert.equal(run.stdout, '');
  }
});

test('a file that is not there is no input', async () => {
  const run = await runCli(['tail', '--config', '/nowhere/limitlens.yaml']);
  assert.equal(run.code, 66);
  assert.match(run.stderr, /limitlens\.yaml: cannot be read \(ENOENT\)/);
});
