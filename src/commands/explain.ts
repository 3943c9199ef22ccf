/**
 * `limitlens explain`: what one line means. Without an argument it reads lines from standard input.
 */
import { loadConf } from '../input/conf-files.js';
import { explanationText } from '../report/explain-text.js';
import { explainLine } from '../report/explain.js';
import type { Output } from './output.js';

export interface ExplainCommandOptions {
  readonly conf?: string;
  readonly showArgs: boolean;
  readonly format: 'text' | 'json';
}

export async function explainCommand(
  line: string,
  options: ExplainCommandOptions,
  output: Output,
): Promise<void> {
  const conf = options.conf === undefined ? {} : { conf: loadConf(options.conf) };
  const explanation = explainLine(line, { ...conf, showArgs: options.showArgs });
  await output.write(
    options.format === 'json' ? `${JSON.stringify(explanation)}\n` : explanationText(explanation),
  );
}
