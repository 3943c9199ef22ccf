/**
 * `limitlens explain`: what a line means: the one given, or each of those on standard input.
 */
import { createInterface } from 'node:readline';
import { EXIT, InputError } from '../errors.js';
import { loadConf } from '../input/conf-files.js';
import { explanationText } from '../report/explain-text.js';
import { explainLine } from '../report/explain.js';
import type { Output } from './output.js';

export interface ExplainCommandOptions {
  readonly conf?: string;
  readonly showArgs: boolean;
  readonly format: 'text' | 'json';
}

/**
 * @param line undefined for those on standard input, which come out as blocks, or as JSON lines
 * @throws InputError 64 where standard input is a terminal; as loadConf()
 */
export async function explainCommand(
  line: string | undefined,
  options: ExplainCommandOptions,
  output: Output,
): Promise<void> {
  const conf = options.conf === undefined ? {} : { conf: loadConf(options.conf) };
  const textOf = (one: string): string => {
    const explanation = explainLine(one, { ...conf, showArgs: options.showArgs });
    return options.format === 'json'
      ? `${JSON.stringify(explanation)}\n`
      : explanationText(explanation);
  };
  if (line !== undefined) {
    await output.write(textOf(line));
    return;
  }
  if (process.stdin.isTTY) {
    throw new InputError(
      'expected a line to explain: quote it, or send lines to standard input\n' +
        "  Say grep limiting error.log | tail -1 | limitlens explain, or limitlens explain 'LINE'.",
      EXIT.usage,
    );
  }
  let isFirst = true;
  for await (const one of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const gap = isFirst || options.format === 'json' ? '' : '\n';
    isFirst = false;
    await output.write(gap + textOf(one));
    if (output.isGone) break;
  }
}
