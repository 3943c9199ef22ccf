/**
 * An nginx configuration into what it says about limits and logs.
 *
 * Reads line by line like ngx_conf_parse(), so that of several mistakes the first one is reported,
 * in nginx's words and with nginx's line. What is inherited is settled when all has been read.
 *
 * Not here: files (src/input/conf-files.ts), and the question which rules a request meets
 * (select-server.ts, location.ts).
 */
import { ConfError } from './conf-error.js';
import { specOf } from './directives.js';
import { mergeLevels } from './effective.js';
import { GeoReader } from './geo-block.js';
import { hasWildcard } from './glob.js';
import { addNote, Level, refuse, type Context, type Draft } from './level.js';
import type { LocationDraft, ServerDraft } from './level.js';
import { Lexer, type Directive } from './lexer.js';
import { readLocationHead } from './location-head.js';
import { COMBINED } from './logs.js';
import { MapReader } from './map-block.js';
import type { ConfWhere, NginxConf } from './model.js';
import { noteForeign, noteUnreadLimit, readIfCondition } from './request-phases.js';
import { readListen, readServerName } from './server-lines.js';
import { SharedZones } from './shared-zones.js';
import { dumpLoader, folderOf, fullName, splitDump, type ConfLoader } from './source.js';
import { variablesOf } from './variables.js';

export type { ConfLoader } from './source.js';

/** A file that includes itself would otherwise be read until memory ends. */
const MAX_INCLUDE_DEPTH = 100;

/**
 * Reads a configuration file with everything that it includes.
 *
 * @param entryPath path of the main file; relative includes resolve against its folder
 * @param load reads files and lists those that match a pattern
 * @param prefix the folder for relative includes, when it is not the main file's own
 * @throws ConfError for what nginx refuses, with file and line
 */
export function parseConf(
  entryPath: string,
  load: ConfLoader,
  prefix = folderOf(entryPath),
): NginxConf {
  return new ConfReader(entryPath, prefix, load).run(entryPath);
}

/**
 * Reads the output of `nginx -T`.
 *
 * @param path where the dump came from; places inside of it keep the names that nginx printed
 * @throws ConfError for what nginx refuses, and when the text holds no configuration file
 */
export function parseConfDump(path: string, text: string): NginxConf {
  const sections = splitDump(text);
  const entry = sections[0];
  if (entry === undefined) {
    throw new ConfError({ path, line: 1 }, 'no "# configuration file" line, so no nginx -T output');
  }
  return new ConfReader(entry.path, folderOf(entry.path), dumpLoader(sections)).run(path);
}

/** What is done with a directive depends on the block that it stands in. */
type Handle = (directive: Directive) => void;

class ConfReader {
  private readonly entryPath: string;
  private readonly prefix: string;
  private readonly load: ConfLoader;
  private readonly draft: Draft;
  private readonly open: Lexer[] = [];

  constructor(entryPath: string, prefix: string, load: ConfLoader) {
    this.entryPath = entryPath;
    this.prefix = prefix;
    this.load = load;
    this.draft = {
      main: new Level('main', { path: entryPath, line: 1 }),
      http: undefined,
      hasEvents: false,
      zones: new SharedZones(),
      servers: [],
      logFormats: new Map([[COMBINED.name, COMBINED]]),
      maps: new Map(),
      geos: new Map(),
      accessLogs: [],
      errorLogs: [],
      logBuffers: new Map(),
      defaultAddresses: new Set(),
      assignments: [],
      notes: [],
    };
  }

  run(path: string): NginxConf {
    const draft = this.draft;
    this.readFile(this.entryPath, draft.main.where, (line) => this.mainDirective(line));
    const { servers, ruleSets } = mergeLevels(draft);
    if (!draft.hasEvents) {
      const message = 'no "events" section: nginx would not start with this file alone';
      addNote(draft, 'no-events-section', message, draft.main.where);
    }
    draft.zones.requireSizes();
    this.noteKeyAssignments();
    return {
      path,
      reqZones: draft.zones.reqZones,
      connZones: draft.zones.connZones,
      servers,
      ruleSets,
      logFormats: draft.logFormats,
      maps: draft.maps,
      geos: draft.geos,
      accessLogs: draft.accessLogs,
      errorLogs: draft.errorLogs,
      notes: draft.notes,
    };
  }

  private readFile(path: string, where: ConfWhere, handle: Handle): void {
    const text = this.load.read(path);
    if (text === undefined) {
      throw new ConfError(where, `open() "${path}" failed (2: No such file or directory)`);
    }
    if (this.open.length >= MAX_INCLUDE_DEPTH) {
      throw new ConfError(where, `open() "${path}" failed (24: Too many open files)`);
    }
    this.open.push(new Lexer(path, text));
    this.readLines(true, handle);
    this.open.pop();
  }

  /** The loop of ngx_conf_parse(): to the end of the file, or to the brace that ends the block. */
  private readLines(isFile: boolean, handle: Handle): void {
    const lexer = this.open.at(-1)!;
    for (;;) {
      const token = lexer.next();
      if (token.kind === 'eof') {
        if (isFile) return;
        throw new ConfError(token.end, 'unexpected end of file, expecting "}"');
      }
      if (token.kind === 'close') {
        if (!isFile) return;
        throw new ConfError(token.end, 'unexpected "}"');
      }
      if (token.words[0] === 'include' && token.kind === 'simple') this.include(token, handle);
      else handle(token);
    }
  }

  private include(directive: Directive, handle: Handle): void {
    if (directive.words.length !== 2) {
      refuse(directive, 'invalid number of arguments in "include" directive');
    }
    const path = fullName(this.prefix, directive.words[1]!);
    const paths = hasWildcard(path) ? this.load.glob(path) : [path];
    for (const found of paths) this.readFile(found, directive.end, handle);
  }

  private mainDirective(directive: Directive): void {
    const draft = this.draft;
    const spec = specOf('main', directive);
    const name = directive.words[0]!;
    if (name === 'http') {
      if (draft.http !== undefined) refuse(directive, '"http" directive is duplicate');
      const level = new Level('http', directive.where);
      draft.http = level;
      this.readLines(false, (line) => this.httpDirective(line, level));
    } else if (name === 'events') {
      if (draft.hasEvents) refuse(directive, '"events" directive is duplicate');
      draft.hasEvents = true;
      this.skipBlock(directive);
    } else if (spec?.read !== undefined) spec.read(draft, draft.main, directive);
    else this.skipForeign(directive);
  }

  private httpDirective(directive: Directive, level: Level): void {
    const spec = specOf('http', directive);
    switch (directive.words[0]) {
      case 'server': {
        const server: ServerDraft = {
          level: new Level('server', directive.where),
          names: [],
          listens: [],
          locations: [],
        };
        this.draft.servers.push(server);
        return this.readLines(false, (line) => this.serverDirective(line, server));
      }
      case 'map':
        return this.readTable(new MapReader(this.draft, directive));
      case 'geo':
        return this.readTable(new GeoReader(this.draft, directive));
      default:
        return this.levelDirective(directive, level, spec?.read);
    }
  }

  private serverDirective(directive: Directive, server: ServerDraft): void {
    const spec = specOf('server', directive);
    switch (directive.words[0]) {
      case 'location':
        return this.location(directive, server.locations, undefined);
      case 'if':
        return this.condition(directive, server.level, 'server-if');
      case 'server_name':
        return readServerName(this.draft, server, directive);
      case 'listen':
        return readListen(this.draft, server, directive);
      default:
        return this.levelDirective(directive, server.level, spec?.read);
    }
  }

  private location(
    directive: Directive,
    siblings: LocationDraft[],
    outer: LocationDraft | undefined,
  ): void {
    const location = readLocationHead(this.draft, directive, outer);
    siblings.push(location);
    this.readLines(false, (line) => this.locationDirective(line, location));
  }

  private locationDirective(directive: Directive, location: LocationDraft): void {
    const spec = specOf('location', directive);
    switch (directive.words[0]) {
      case 'location':
        return this.location(directive, location.children, location);
      case 'if':
        return this.condition(directive, location.level, 'location-if');
      case 'limit_except':
        return this.nested(directive, location.level, 'limit_except');
      case 'set_real_ip_from': {
        const message = 'trusted addresses of a location: limitlens knows those of a server';
        addNote(this.draft, 'real-ip-in-location', message, directive.where);
        return this.levelDirective(directive, location.level, spec?.read);
      }
      default:
        return this.levelDirective(directive, location.level, spec?.read);
    }
  }

  private condition(directive: Directive, owner: Level, context: Context): void {
    readIfCondition(directive);
    this.nested(directive, owner, context);
  }

  private nested(directive: Directive, owner: Level, context: Context): void {
    const level = new Level(context, directive.where, owner);
    this.readLines(false, (line) => {
      this.levelDirective(line, level, specOf(context, line)?.read);
    });
  }

  private levelDirective(
    directive: Directive,
    level: Level,
    read: ((draft: Draft, level: Level, directive: Directive) => void) | undefined,
  ): void {
    if (read !== undefined) return read(this.draft, level, directive);
    noteForeign(this.draft, directive);
    this.skipForeign(directive);
  }

  /** Tables have lines of their own kind, and no blocks inside. */
  private readTable(table: MapReader | GeoReader): void {
    this.readLines(false, (line) => {
      if (line.kind === 'block') refuse(line, 'unexpected "{"');
      table.read(line);
    });
    table.finish();
  }

  private skipForeign(directive: Directive): void {
    if (directive.kind !== 'block') return;
    if (directive.words[0]!.endsWith('_by_lua_block')) this.open.at(-1)!.skipLuaBlock();
    else this.skipBlock(directive);
  }

  /** A block of another module: read for its syntax and its includes, and for limits in it. */
  private skipBlock(head: Directive): void {
    const block = head.words[0]!;
    const handle = (line: Directive): void => {
      noteUnreadLimit(this.draft, line, block);
      if (line.kind !== 'block') return;
      if (line.words[0]!.endsWith('_by_lua_block')) this.open.at(-1)!.skipLuaBlock();
      else this.readLines(false, handle);
    };
    this.readLines(false, handle);
  }

  /** Names what sets a variable that a key is made of, other than map and geo. */
  private noteKeyAssignments(): void {
    const { draft } = this;
    const wanted = [...draft.zones.reqZones.values(), ...draft.zones.connZones.values()].flatMap(
      (zone) => variablesOf(zone.keyExpression),
    );
    const inKeys = new Set<string>();
    for (let name = wanted.pop(); name !== undefined; name = wanted.pop()) {
      if (inKeys.has(name)) continue;
      inKeys.add(name);
      const map = draft.maps.get(name);
      const geo = draft.geos.get(name);
      if (geo !== undefined) wanted.push(geo.source);
      if (map === undefined) continue;
      const values = [map.source, map.defaultValue, ...map.entries.map((entry) => entry.value)];
      wanted.push(...values.flatMap((value) => variablesOf(value)));
    }
    for (const { variable, directive, where } of draft.assignments) {
      if (!inKeys.has(variable)) continue;
      const message = `$${variable}, which a key needs, is set by ${directive}`;
      addNote(draft, 'key-variable-set', message, where);
    }
  }
}
