/**
 * All commands together: options to commands, errors to exit codes.
 */
import { Command, CommanderError } from 'commander';
import { configureHelp, leadToHelp } from './help.js';
import { addConcurrency, addExplain, addImport, addReplay, addRetries } from './log-commands.js';
import {
  addAlerts,
  addDryRun,
  addReport,
  addServe,
  addSources,
  addTop,
  addZones,
} from './store-commands.js';
import { addCheck, addTail } from './tail-commands.js';
import { output } from './terminal.js';
import { EXIT, InputError } from '../errors.js';
import { readVersion } from '../version.js';

function program(): Command {
  const limitlens = new Command('limitlens')
    .description("what nginx's limit_req did, to whom and why")
    .version(readVersion())
    // An option behind a subcommand is the subcommand's, also where its parent has one of that name.
    .enablePositionalOptions()
    .exitOverride();
  configureHelp(limitlens);
  // In the README's order.
  addImport(limitlens);
  addReport(limitlens);
  addTail(limitlens);
  addServe(limitlens);
  addTop(limitlens);
  addAlerts(limitlens);
  addZones(limitlens);
  addDryRun(limitlens);
  addSources(limitlens);
  addRetries(limitlens);
  addConcurrency(limitlens);
  addCheck(limitlens);
  addReplay(limitlens);
  addExplain(limitlens);
  leadToHelp(limitlens, 'limitlens');
  return limitlens;
}

/** Runs the command of this process's arguments, and sets its exit code. */
export async function main(): Promise<void> {
  try {
    await program().parseAsync();
  } catch (error) {
    if (error instanceof CommanderError) {
      process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    } else if (error instanceof InputError) {
      output.note(`limitlens: ${error.message}`);
      process.exitCode = error.exitCode;
    } else {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      output.note(`limitlens: this is a bug, please report it\n${text}`);
      process.exitCode = EXIT.software;
    }
  }
}
