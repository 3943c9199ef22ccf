/**
 * The README's blocks: what they show is what the commands print, on the samples; a command that
 * cannot be run here (a daemon, a service, a live nginx) at least exists, with its options.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, suite, test } from 'node:test';
import { finished, mustRun, runCli, startCli } from './support/cli.js';

const README = readFileSync('README.md', 'utf8');
const DEMO = 'limitlens-data/demo';
const LOGS = ['--conf', 'samples/nginx.conf', 'samples/access.log', 'samples/error.log'];
const PASSWORD = 'of this test';

interface Block {
  readonly language: string;
  readonly text: string;
  /** The paragraph above it. */
  readonly above: string;
}

const BLOCKS: readonly Block[] = Array.from(
  README.matchAll(/(?:((?:.+\n)+)\n)?```(\w*)\n([^]*?)^```$/gm),
  ([, above = '', language, text]) => ({ language: language!, text: text!, above }),
);

/** A command of a console block, continued lines joined, with what it is shown to print. */
interface Shown {
  readonly command: string;
  readonly output: string;
}

const SHOWN: readonly Shown[] = BLOCKS.filter(({ language }) => language === 'console').flatMap(
  ({ text }) =>
    text
      .replace(/\\\n\s*/g, '')
      .split(/^\$ /m)
      .slice(1)
      .map((part) => {
        const [command, ...output] = part.split('\n');
        return { command: command!, output: output.join('\n').trimEnd() };
      }),
);

/** Words as a shell makes them of a line; comments, and what comes behind a pipe, left out. */
function wordsOf(line: string): string[] {
  const words = line.match(/(?:"[^"]*"|'[^']*'|[^\s"']+)+/g) ?? [];
  const end = words.findIndex((word) => word.startsWith('#') || word === '|');
  return (end < 0 ? words : words.slice(0, end)).map((word) => word.replaceAll(/["']/g, ''));
}

/** Every `limitlens …` of the README, in blocks and in the text; by its words. */
const COMMANDS: readonly string[][] = [
  ...BLOCKS.filter(({ language }) => language !== 'text').flatMap(({ text }) =>
    text.replace(/\\\n\s*/g, '').split('\n'),
  ),
  ...Array.from(README.matchAll(/`([^`\n]+)`/g), ([, code]) => code!),
].flatMap((line) => {
  const at = /(?:^|[\s|])limitlens ((?!is\b)[a-z].*)$/.exec(line);
  return at === null ? [] : [wordsOf(at[1]!)];
});

/** What differs from run to run: how long ago, and the size of a page that has its own date. */
const steady = (text: string): string =>
  text.replace(/which is \d+ \w+ ago/g, 'which is N ago').replace(/\d+ KiB/g, 'N KiB');

void suite('the blocks of the README', { timeout: 300_000 }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'limitlens-'));
  const store = join(dir, 'demo');
  after(() => rmSync(dir, { recursive: true, force: true }));
  before(() => mustRun(['import', '--store', store, ...LOGS]));

  /** Runs a line of the README on the demo's store; what it prints, as the README would show it. */
  async function printed(command: string): Promise<string> {
    const [, line, lines] = /^limitlens (.*?)(?: \| head -(\d+))?$/.exec(command)!;
    const words = wordsOf(line!).flatMap((word) => (word === 'LOGS' ? LOGS : [word]));
    const args = words.map((word) =>
      word === DEMO ? store : word === 'report.html' ? join(dir, word) : word,
    );
    const { stdout, stderr } = await runCli(args, { env: { LC_ALL: 'C.UTF-8' } });
    const text = (stdout + stderr).replaceAll(store, DEMO).replaceAll(`${dir}/`, '');
    const shown = lines === undefined ? text : text.split('\n').slice(0, Number(lines)).join('\n');
    return steady(shown.trimEnd());
  }

  const ofDemo = SHOWN.filter(({ command }) =>
    /^limitlens .*(?:\bdemo\b|zones size)/.test(command),
  );
  for (const { command, output } of ofDemo) {
    test(command, async () => {
      assert.equal(await printed(command), steady(output));
    });
  }

  // `limitlens … LOGS` in the text, and a piece of what it prints below.
  const pieces = BLOCKS.flatMap(({ language, above, text }) => {
    const command = language === 'text' ? /`(limitlens [^`]+)`/.exec(above)?.[1] : undefined;
    return command === undefined ? [] : [{ command, text }];
  });
  for (const { command, text } of pieces) {
    test(`${command}: the piece that is shown`, async () => {
      const all = await printed(command.replaceAll(/\s+/g, ' '));
      assert.ok(`${all}\n`.includes(text), `expected\n${text}\nin\n${all}`);
    });
  }

  test('what check says is as many as the README says', async () => {
    const [, warnings, infos] = /has (\d+) warnings and (\d+) `info`/.exec(README)!;
    const last = (await printed('limitlens check --conf samples/nginx.conf')).split('\n').at(-1);
    assert.equal(last, `${warnings} warnings, ${infos} info.`);
  });

  test('limitlens.yaml with two mistakes', async () => {
    const { output } = SHOWN.find(({ command }) => command.includes('check --config'))!;
    const yaml = join(dir, 'limitlens.yaml');
    const lines = ['nginx:', '  conf: [nginx.conf]', '', 'http:', '  tokenfile: token', 'store:'];
    writeFileSync(yaml, [...lines, '  spool_max: lots', ''].join('\n'));
    const run = await runCli(['check', '--config', yaml]);
    assert.equal(run.code, 78);
    assert.equal(run.stderr.replaceAll(`${dir}/`, '').trimEnd(), output);
  });

  test('the page and the store over HTTP, asked with curl', async (t) => {
    const curls = SHOWN.filter(({ command }) => command.startsWith('curl '));
    assert.equal(curls.length, 3);
    const env = { LIMITLENS_CLICKHOUSE_HTTP_PASSWORD: PASSWORD };
    const listen = ['--listen', '127.0.0.1:0', '--clickhouse-http', '127.0.0.1:0'];
    const child = startCli(['serve', '--store', store, ...listen], { env });
    const ended = finished(child);
    t.after(() => child.kill());
    const urls: string[] = [];
    for await (const url of createInterface(child.stdout!)) if (urls.push(url) === 2) break;
    for (const { command, output } of curls) {
      const [page, clickhouse] = urls as [string, string];
      const [, path] = /http:\/\/127\.0\.0\.1:\d+\/([^\s']*)/.exec(command)!;
      const body = /--data-binary "([^"]+)"/.exec(command)?.[1];
      const login = Buffer.from(`limitlens:${PASSWORD}`).toString('base64');
      const answer = await (body === undefined
        ? fetch(`${page}${path}`)
        : fetch(clickhouse, {
            method: 'POST',
            body,
            headers: { authorization: `Basic ${login}` },
          }));
      assert.equal((await answer.text()).replaceAll('\r', '').trimEnd(), output, command);
    }
    child.kill('SIGTERM');
    assert.equal((await ended).code, 0);
  });
});

test('no console block is left out, but that of a live nginx', () => {
  const isHeld = ({ command }: Shown): boolean =>
    /\bdemo\b|zones size|check --config|^curl /.test(command);
  assert.deepEqual(
    SHOWN.filter((shown) => !isHeld(shown)).map(({ command }) => command),
    ['limitlens report --store limitlens-data/live'],
  );
});

test('every command and option that the README writes exists', async () => {
  const helps = new Map<string, string>();
  for (const [name, inner = ''] of COMMANDS) {
    const isInner = /^(?:alerts rules|zones size)$/.test(`${name} ${inner}`);
    const command = isInner ? [name!, inner] : [name!];
    const id = command.join(' ');
    if (helps.has(id)) continue;
    helps.set(id, (await mustRun([...command, '--help'])).stdout);
  }
  assert.ok(helps.size >= 12, [...helps.keys()].join());
  for (const words of COMMANDS) {
    const help = helps.get(words.slice(0, 2).join(' ')) ?? helps.get(words[0]!)!;
    assert.match(help, new RegExp(`^Usage: limitlens ${words[0]}\\b`), words.join(' '));
    for (const word of words.filter((one) => one.startsWith('--'))) {
      const name = word.replace(/=.*$/, '');
      assert.ok(help.includes(`  ${name} `), `limitlens ${words.join(' ')}: no ${name}`);
    }
  }
});

test('the table of commands has each, in the order of --help', async () => {
  const { stdout } = await mustRun(['--help']);
  const [, commands] = stdout.split('Commands:\n') as [string, string];
  const inHelp = Array.from(commands.matchAll(/^ {2}([a-z-]+)/gm), ([, name]) => name!);
  const inTable = Array.from(README.matchAll(/^\| `limitlens ([a-z-]+)/gm), ([, name]) => name!);
  assert.deepEqual(
    inTable,
    inHelp.filter((name) => name !== 'help'),
  );
});

test('every npm run of the README is a script', () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: object };
  const named = Array.from(README.matchAll(/npm (?:run )?((?!ci|run|link|install)[a-z:]+)/g));
  assert.ok(named.length > 5);
  for (const [command, name] of named) assert.ok(name! in scripts, command);
});
